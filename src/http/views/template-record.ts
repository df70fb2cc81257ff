// A template as the API shows it: what its definition file says for people, and how many instances it has. What it runs, and
// the values of its environment, are not shown.

import Type, { type Static } from 'typebox';
import type { Gateway } from '../../gateway.ts';
import type { TemplateDefinition } from '../../templates/definition.ts';
import { withoutSecrets } from '../../templates/settings.ts';
import { LoadBalancerView, loadBalancerView } from './load-balancer.ts';

const Texts = Type.Array(Type.String());

export const TemplateRecord = Type.Object({
  id: Type.String(),
  /** The id, where there is no definition file. */
  name: Type.String(),
  description: Type.Union([Type.String(), Type.Null()]),
  version: Type.Union([Type.String(), Type.Null()]),
  author: Type.Union([Type.String(), Type.Null()]),
  capabilities: Texts,
  tags: Texts,
  requires: Texts,
  ports: Type.Array(Type.Integer()),
  transport: Type.Union([Type.String(), Type.Null()]),
  /** Whether there is a definition file. */
  is_defined: Type.Boolean(),
  /** The settings that an instance takes in `config`; null for none. */
  config_schema: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()]),
  instances: Type.Integer(),
  load_balancer: LoadBalancerView,
});
export type TemplateRecord = Static<typeof TemplateRecord>;

/** Throws TEMPLATE_NOT_FOUND. */
export function templateRecord(
  gateway: Pick<Gateway, 'template'>,
  id: string,
  definition: TemplateDefinition | undefined,
): TemplateRecord {
  const { instances, policy } = gateway.template(id);
  return {
    id,
    name: definition?.name ?? id,
    description: definition?.description ?? null,
    version: definition?.version ?? null,
    author: definition?.author ?? null,
    capabilities: definition?.capabilities ?? [],
    tags: definition?.tags ?? [],
    requires: definition?.requires ?? [],
    ports: definition?.ports ?? [],
    transport: definition?.transport ?? null,
    is_defined: definition !== undefined,
    config_schema: definition?.config_schema === undefined ? null : withoutSecrets(definition.config_schema),
    instances: instances.length,
    load_balancer: loadBalancerView(policy),
  };
}

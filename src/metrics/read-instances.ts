// Reads the instances of templates in several turns of the event loop: there may be thousands.

import type { InstanceSnapshot } from '../domain/instances/instance.ts';
import { eachInGroups } from '../domain/time/task-groups.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Server } from '../gateway/gateway-types.ts';
import type { GatewayInternals } from '../gateway/internals.ts';

type InstancesByTemplate = ReadonlyMap<string, readonly InstanceSnapshot[]>;

/** The instances of these templates, by template. One that is deleted meanwhile may have some or none. */
export async function readInstances(
  gateway: Pick<Gateway, 'eachServer'> & { readonly internals: Pick<GatewayInternals, 'scheduler'> },
  templates: readonly string[],
): Promise<InstancesByTemplate> {
  const instances = new Map<string, InstanceSnapshot[]>(templates.map((template) => [template, []]));
  const add = ({ definition, snapshot }: Server) => instances.get(definition.template)?.push(snapshot);
  await eachInGroups(gateway.eachServer(templates), add, gateway.internals.scheduler);
  return instances;
}

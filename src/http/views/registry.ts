// How the whole registry looks: the shape of the registry document, with the instance records in it.
// Source: spec, "Gateway configuration per template"; decisions, "Surface A bodies".

import Type, { type Static } from 'typebox';
import type { Principal } from '../../domain/account.ts';
import type { Gateway } from '../../gateway.ts';
import { visibleServers, visibleTemplates } from '../visible.ts';
import { instanceCounts } from './instance-counts.ts';
import { InstanceRecord, instanceRecord } from './instance-record.ts';
import { LoadBalancerView, loadBalancerView } from './load-balancer.ts';

/** Schema of GET /gateway/registry. */
export const RegistryView = Type.Object({
  templates: Type.Record(
    Type.String(),
    Type.Object({ instances: Type.Array(InstanceRecord), load_balancer: LoadBalancerView }),
  ),
  stats: Type.Object({
    total_templates: Type.Integer(),
    total_instances: Type.Integer(),
    healthy_instances: Type.Integer(),
    unhealthy_instances: Type.Integer(),
  }),
});
export type RegistryView = Static<typeof RegistryView>;

/** Makes the answer for one viewer; templates without instances are there, too. */
export function registryView(gateway: Gateway, viewer: Principal): RegistryView {
  const servers = visibleServers(gateway, viewer);
  const byTemplate = Map.groupBy(servers, ({ definition }) => definition.template);
  const templates = visibleTemplates(gateway, viewer).map((template) => {
    const records = (byTemplate.get(template) ?? []).map((server) => instanceRecord(server, viewer));
    return [
      template,
      { instances: records, load_balancer: loadBalancerView(gateway.template(template).policy) },
    ] as const;
  });
  const { total, healthy, unhealthy } = instanceCounts(servers);
  return {
    templates: Object.fromEntries(templates),
    stats: {
      total_templates: templates.length,
      total_instances: total,
      healthy_instances: healthy,
      unhealthy_instances: unhealthy,
    },
  };
}

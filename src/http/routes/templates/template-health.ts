// Health of a template with its instances, and of a view with its templates.

import Type, { type Static } from 'typebox';
import { STRATEGY_NAMES } from '../../../balancing/strategies.ts';
import type { Principal } from '../../../domain/accounts/principal.ts';
import { mayUseInView } from '../../../domain/accounts/rights.ts';
import { countHealth } from '../../../domain/instances/instance.ts';
import { whenKnown } from '../../../domain/time/when-known.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { healthWith, knownAtPeers } from '../../all-nodes/instances.ts';
import { MissingNodes, partialField } from '../../all-nodes/other-members.ts';
import { InstanceHealth } from '../../records/instance-record.ts';
import { closed, named, number, rounded, text } from '../../records/schemas.ts';
import { Withheld, withheldFor } from '../../records/withheld.ts';
import { json } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import { TemplateParams } from '../../routing/route-params.ts';

/** Body of GET /mcp/{template}/health; with `?format=array` the instances are a list and carry their `id`. */
const TemplateHealth = named('TemplateHealth', {
  template_name: text('everything'),
  status: Type.Enum(['healthy', 'unhealthy']),
  strategy: Type.Enum([...STRATEGY_NAMES], { examples: ['least_connections'] }),
  total_instances: Type.Integer(),
  healthy_instances: Type.Integer(),
  health_percentage: number(100),
  instances: Type.Union([
    Type.Record(Type.String(), InstanceHealth, { propertyNames: text('everything-1') }),
    Type.Array(Type.Object({ id: text('everything-1'), ...InstanceHealth.properties })),
  ]),
  withheld: Withheld,
  partial: MissingNodes,
});

const Status = Type.Enum(['healthy', 'unhealthy']);
const ComponentHealth = Type.Object({
  status: Status,
  total_instances: Type.Integer(),
  healthy_instances: Type.Integer(),
});

/** Health of a view: the worst status of its templates. */
const ViewHealth = named('ViewHealth', {
  view: text('support'),
  ...ComponentHealth.properties,
  health_percentage: number(100),
  templates: Type.Record(Type.String(), ComponentHealth, { propertyNames: text('everything') }),
});

function viewHealth(
  { views }: Pick<Gateway, 'views'>,
  view: string,
  viewer: Principal,
): Static<typeof ViewHealth> {
  const visible = views.health(view).filter(({ template }) => mayUseInView(viewer, template));
  const parts = visible.map(({ template, total, healthy }) => {
    const status = healthy > 0 ? ('healthy' as const) : ('unhealthy' as const);
    return [template, { status, total_instances: total, healthy_instances: healthy }] as const;
  });
  const sum = (field: 'total_instances' | 'healthy_instances') =>
    parts.reduce((total, [, part]) => total + part[field], 0);
  const [total, healthy] = [sum('total_instances'), sum('healthy_instances')];
  const isHealthy = parts.length > 0 && parts.every(([, { status }]) => status === 'healthy');
  return {
    view,
    status: isHealthy ? 'healthy' : 'unhealthy',
    total_instances: total,
    healthy_instances: healthy,
    health_percentage: total === 0 ? 0 : rounded((healthy / total) * 100, 1),
    templates: Object.fromEntries(parts),
  };
}

export const templateHealthRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/mcp/:template/health', {
    summary: 'Health of a template and its instances',
    scope: 'gateway:read',
    request: {
      params: TemplateParams,
      query: closed({ format: Type.Optional(Type.Enum(['object', 'array'])) }),
    },
    answers: {
      200: {
        description: 'Counts, and each instance; of a view, each of its templates',
        body: Type.Union([TemplateHealth, ViewHealth]),
      },
    },
    handler: async ({ params: { template }, query, principal }, { gateway, scheduler, otherMembers }) => {
      if (gateway.views.has(template)) return json(200, viewHealth(gateway, template, principal));
      const shown = gateway.template(template);
      const withheld = await withheldFor(principal, template, shown, scheduler);
      // `gateway.health` is not called as well: each makes a snapshot of all instances, 10,000 take 0.1 s.
      const servers = gateway.servers(template);
      return whenKnown(knownAtPeers(gateway, principal, otherMembers), (known) => {
        const healths = servers.map(
          (server) => [server.definition.id, healthWith(known, server, principal)] as const,
        );
        const { total, healthy, healthPercentage } = countHealth(healths.map(([, health]) => health));
        return json(200, {
          template_name: template,
          status: healthy > 0 ? 'healthy' : 'unhealthy',
          strategy: shown.policy.strategy,
          total_instances: total,
          healthy_instances: healthy,
          health_percentage: healthPercentage,
          instances:
            query.format === 'array'
              ? healths.map(([id, health]) => ({ id, ...health }))
              : Object.fromEntries(healths),
          ...withheld,
          ...partialField(known.partial),
        });
      });
    },
  }),
];

// Templates: their names, their records, their load balancer settings, and the whole registry.

import Type, { type Static } from 'typebox';
import {
  describedSettings,
  LoadBalancerChange,
  ShownLoadBalancer,
  shownLoadBalancer,
} from '../../../balancing/policy-schemas.ts';
import { mayDo, type Principal } from '../../../domain/accounts/principal.ts';
import { insufficientPermissions } from '../../../domain/errors/account-errors.ts';
import { countHealth, TemplateAuth } from '../../../domain/instances/instance.ts';
import { eachInGroups } from '../../../domain/time/task-groups.ts';
import { whenKnown } from '../../../domain/time/when-known.ts';
import type { Server } from '../../../gateway/gateway-types.ts';
import { withoutSecretDefaults } from '../../../templates/config-schema.ts';
import { type KnownInstances, knownAtPeers, recordWith } from '../../all-nodes/instances.ts';
import { MissingNodes, partialField } from '../../all-nodes/other-members.ts';
import { visibleTemplates } from '../../callers/visible.ts';
import { InstanceRecord } from '../../records/instance-record.ts';
import { AnyObject, closed, integer, named, nullableText, text } from '../../records/schemas.ts';
import { Withheld, withheldFor } from '../../records/withheld.ts';
import { jsonInTurns } from '../../replies/json-in-turns.ts';
import { json, noContent } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import { TemplateParams } from '../../routing/route-params.ts';
import type { Services } from '../../services.ts';

const Texts = Type.Array(Type.String());

/** The setting of instances that are registered without `auth`. */
const ShownAuth = Type.Union([TemplateAuth, Type.Null()]);

/**
 * The descriptive part of the definition file, without its command and the values of its environment, and the
 * number of instances.
 */
const TemplateRecord = Type.Object({
  id: text('everything-1'),
  /** The id, if there is no definition file. */
  name: text('echo'),
  description: nullableText('Echoes back the input string'),
  version: nullableText('2.0.0'),
  author: Type.Union([Type.String(), Type.Null()]),
  capabilities: Texts,
  tags: Texts,
  requires: Texts,
  ports: Type.Array(Type.Integer()),
  /** Names of the variables that every program of the template gets. */
  environment: Texts,
  transport: Type.Union([Type.String(), Type.Null()]),
  /** True when a file in the folder of templates, or the API, has defined it. */
  is_defined: Type.Boolean(),
  /** True when the API has defined it: its definition can be replaced and deleted. */
  is_stored: Type.Boolean(),
  /** The settings that an instance takes in `config`; null for none. */
  config_schema: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()]),
  instances: Type.Integer(),
  load_balancer: ShownLoadBalancer,
  auth: ShownAuth,
});

function templateRecord(
  id: string,
  { gateway, definitions }: Pick<Services, 'gateway' | 'definitions'>,
): Static<typeof TemplateRecord> {
  const { instances, policy, auth = null } = gateway.template(id);
  const definition = definitions.get(id);
  const { name = id, description = null, version = null, author = null } = definition ?? {};
  const { capabilities = [], tags = [], requires = [], ports = [] } = definition ?? {};
  const { environment = {}, transport = null, config_schema: schema } = definition ?? {};
  return {
    id,
    name,
    description,
    version,
    author,
    capabilities,
    tags,
    requires,
    ports,
    environment: Object.keys(environment),
    transport,
    is_defined: definition !== undefined,
    is_stored: definition !== undefined && !definitions.isInFolder(id),
    config_schema: schema === undefined ? null : withoutSecretDefaults(schema),
    instances: instances.length,
    load_balancer: shownLoadBalancer(policy),
    auth,
  };
}

/** Body of GET /gateway/registry: the shape of the registry document, with instance records. */
const RegistryRecord = named('Registry', {
  templates: Type.Record(
    Type.String(),
    Type.Object({
      instances: Type.Array(InstanceRecord),
      load_balancer: ShownLoadBalancer,
      withheld: Withheld,
    }),
    { propertyNames: text('everything') },
  ),
  stats: Type.Object({
    total_templates: Type.Integer(),
    total_instances: Type.Integer(),
    healthy_instances: Type.Integer(),
    unhealthy_instances: integer(0),
  }),
  partial: MissingNodes,
});

/** Makes the answer for one viewer, with the templates that have no instances. */
async function registryRecord(
  viewer: Principal,
  { gateway, scheduler }: Pick<Services, 'gateway' | 'scheduler'>,
  known: KnownInstances,
): Promise<Static<typeof RegistryRecord>> {
  type Shown = Static<typeof RegistryRecord>['templates'][string];
  const templates: Record<string, Shown> = {};
  const records: InstanceRecord[] = [];
  for (const template of visibleTemplates(gateway, viewer)) {
    await scheduler.turn();
    if (!gateway.hasTemplate(template)) continue; // deleted since the turn before
    const view = gateway.template(template);
    const shown: Shown = { instances: [], load_balancer: shownLoadBalancer(view.policy) };
    const add = (server: Server) => shown.instances.push(recordWith(known, server, viewer));
    await eachInGroups(gateway.eachServer([template]), add, scheduler);
    records.push(...shown.instances);
    templates[template] = Object.assign(shown, await withheldFor(viewer, template, view, scheduler));
  }
  const { total, healthy } = countHealth(records);
  return {
    templates,
    stats: {
      total_templates: Object.keys(templates).length,
      total_instances: total,
      healthy_instances: healthy,
      unhealthy_instances: total - healthy,
    },
    ...partialField(known.partial),
  };
}

/** The change of the setting. Null restores the setting of the definition file, or none. */
const AuthChange = Type.Union([TemplateAuth, Type.Null()]);

/** Null restores a default. The settings of the load balancer alone may be without `load_balancer`. */
const TemplateChange = Type.Union([
  closed({ load_balancer: LoadBalancerChange, auth: Type.Optional(AuthChange) }),
  closed({ auth: AuthChange }),
  LoadBalancerChange,
]);

function changeIn(body: Static<typeof TemplateChange>) {
  if ('load_balancer' in body) return body;
  return 'auth' in body ? { ...body, load_balancer: {} } : { load_balancer: body, auth: undefined };
}

/** A caller that may not approve tools must not end the need for it. Throws INSUFFICIENT_PERMISSIONS. */
export function requireAdminToApprove(principal: Principal, settings: { readonly approve?: unknown }): void {
  if (settings.approve !== undefined && !mayDo(principal, ['admin']))
    throw insufficientPermissions(['admin']);
}

export const templateRoutes: readonly HttpRoute[] = [
  defineRoute('GET', '/gateway/registry', {
    summary: 'Everything that is registered',
    scope: 'gateway:read',
    answers: { 200: { description: 'Templates with their instances and settings', body: RegistryRecord } },
    handler: ({ principal }, services) =>
      whenKnown(knownAtPeers(services.gateway, principal, services.otherMembers), async (known) => {
        const record = await registryRecord(principal, services, known);
        await services.scheduler.turn();
        return json(200, record);
      }),
  }),
  defineRoute('GET', '/gateway/templates', {
    summary: 'Names of the templates',
    scope: 'gateway:read',
    request: {
      query: closed({ tag: Type.Optional(Type.String()), include_details: Type.Optional(Type.Boolean()) }),
    },
    answers: {
      200: {
        description: 'Sorted names; with `include_details` also what each is',
        body: Type.Object({
          templates: Type.Array(text('everything')),
          details: Type.Optional(Type.Array(TemplateRecord)),
        }),
      },
    },
    handler: async ({ query, principal }, services) => {
      const { gateway, definitions, scheduler } = services;
      const { tag, include_details: includesDetails = false } = query;
      const visible = visibleTemplates(gateway, principal);
      const templates =
        tag === undefined ? visible : visible.filter((name) => definitions.get(name)?.tags?.includes(tag));
      if (!includesDetails) return json(200, { templates });
      const details: Static<typeof TemplateRecord>[] = [];
      const add = (name: string): void => {
        // One may be deleted between two turns.
        if (gateway.hasTemplate(name)) details.push(templateRecord(name, services));
      };
      await eachInGroups(templates, add, scheduler);
      return jsonInTurns({ templates, details }, scheduler);
    },
  }),
  defineRoute('GET', '/gateway/template-settings', {
    summary: 'The settings that the load balancer of a template may have',
    scope: 'gateway:read',
    answers: {
      200: {
        description: 'Their meanings, and the JSON Schema of each value',
        body: Type.Object({
          settings: Type.Array(
            Type.Object({
              name: text('max_retries'),
              title: text('Retries'),
              description: Type.String(),
              schema: AnyObject,
            }),
          ),
        }),
      },
    },
    handler: () => json(200, { settings: describedSettings() }),
  }),
  defineRoute('GET', '/gateway/templates/:template', {
    summary: 'A template, and the settings of its instances',
    scope: 'gateway:read',
    request: { params: TemplateParams },
    answers: { 200: { description: 'From its definition file, if it has one', body: TemplateRecord } },
    handler: ({ params }, services) => json(200, templateRecord(params.template, services)),
  }),
  defineRoute('PATCH', '/gateway/templates/:template', {
    summary: 'Change the load balancer of a template, or its `auth`; null restores the default',
    scope: 'gateway:write',
    request: { params: TemplateParams, body: TemplateChange },
    answers: {
      200: {
        description: 'The settings now in force; they hold from the next call on',
        body: Type.Object({
          template_name: text('everything'),
          load_balancer: ShownLoadBalancer,
          auth: ShownAuth,
        }),
      },
    },
    handler: async ({ params, body, principal }, { gateway }) => {
      const { load_balancer: settings, auth } = changeIn(body);
      requireAdminToApprove(principal, settings);
      const { template } = params;
      await gateway.changeTemplate(template, settings, auth);
      const { policy, auth: present = null } = gateway.template(template);
      return json(200, { template_name: template, load_balancer: shownLoadBalancer(policy), auth: present });
    },
  }),
  defineRoute('DELETE', '/gateway/templates/:template', {
    summary:
      'Delete a template that has no instances; one with a definition file stays, without its settings',
    scope: 'gateway:write',
    request: { params: TemplateParams },
    answers: { 204: { description: 'Its settings are no longer stored, and it is not listed' } },
    handler: async ({ params, principal }, { gateway }) => {
      await gateway.deleteTemplate(params.template, ({ approve }) => {
        if (approve === 'pinned') requireAdminToApprove(principal, { approve });
      });
      return noContent();
    },
  }),
];

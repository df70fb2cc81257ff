// Templates as the registry knows them: their names, their settings, and everything that is registered.

import Type from 'typebox';
import { LoadBalancerChange } from '../../domain/template.ts';
import type { Gateway } from '../../gateway.ts';
import { TemplateParams } from '../path-params.ts';
import { json, noContent } from '../reply.ts';
import { defineRoute, type Route, type Services } from '../route.ts';
import { CLOSED } from '../schemas.ts';
import { LoadBalancerView, loadBalancerView } from '../views/load-balancer.ts';
import { RegistryView, registryView } from '../views/registry.ts';
import { TemplateRecord, templateRecord } from '../views/template-record.ts';
import { visibleTemplates } from '../visible.ts';

/** The settings, or the object `load_balancer` of the registry document around them. Null: the default holds again. */
const TemplateChange = Type.Union([
  Type.Object({ load_balancer: LoadBalancerChange }, CLOSED),
  LoadBalancerChange,
]);

export const templateRoutes: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/gateway/registry',
    summary: 'Everything that is registered',
    scope: 'gateway:read',
    answers: { 200: { description: 'Templates with their instances and settings', body: RegistryView } },
    errors: [],
    handler: ({ principal }, { gateway }) => json(200, registryView(gateway, principal)),
  }),
  defineRoute({
    method: 'GET',
    path: '/gateway/templates',
    summary: 'Names of the templates',
    scope: 'gateway:read',
    request: {
      query: Type.Object(
        { tag: Type.Optional(Type.String()), include_details: Type.Optional(Type.Boolean()) },
        CLOSED,
      ),
    },
    answers: {
      200: {
        description: 'Sorted names; with `include_details` also what each is',
        body: Type.Object({
          templates: Type.Array(Type.String()),
          details: Type.Optional(Type.Array(TemplateRecord)),
        }),
      },
    },
    errors: [],
    handler: ({ query, principal }, { gateway, definitions }) => {
      const { tag, include_details: includesDetails = false } = query;
      const visible = visibleTemplates(gateway, principal);
      const templates =
        tag === undefined ? visible : visible.filter((each) => hasTag(each, tag, gateway, definitions));
      if (!includesDetails) return json(200, { templates });
      const details = templates.map((each) => templateRecord(gateway, each, definitions.get(each)));
      return json(200, { templates, details });
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/gateway/templates/:template',
    summary: 'What a template is, and the settings its instances take',
    scope: 'gateway:read',
    request: { params: TemplateParams },
    answers: { 200: { description: 'From its definition file, if it has one', body: TemplateRecord } },
    errors: ['TEMPLATE_NOT_FOUND'],
    handler: ({ params }, { gateway, definitions }) =>
      json(200, templateRecord(gateway, params.template, definitions.get(params.template))),
  }),
  defineRoute({
    method: 'PATCH',
    path: '/gateway/templates/:template',
    summary:
      'Change the load balancer of a template; null brings a setting back to the default of the gateway',
    scope: 'gateway:write',
    request: { params: TemplateParams, body: TemplateChange },
    answers: {
      200: {
        description: 'The settings now in force; they hold from the next call on',
        body: Type.Object({ template_name: Type.String(), load_balancer: LoadBalancerView }),
      },
    },
    errors: ['TEMPLATE_NOT_FOUND', 'SHUTTING_DOWN'],
    handler: async ({ params, body }, { gateway }) => {
      await gateway.changeTemplate(params.template, 'load_balancer' in body ? body.load_balancer : body);
      const { policy } = gateway.template(params.template);
      return json(200, { template_name: params.template, load_balancer: loadBalancerView(policy) });
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/gateway/templates/:template',
    summary:
      'Delete a template that has no instances; one with a definition file stays, without its settings',
    scope: 'gateway:write',
    request: { params: TemplateParams },
    answers: { 204: { description: 'Its settings are stored no more, and it is not listed' } },
    errors: ['TEMPLATE_NOT_FOUND', 'SHUTTING_DOWN'],
    handler: async ({ params }, { gateway }) => {
      await gateway.deleteTemplate(params.template);
      return noContent();
    },
  }),
];

/** A tag of the definition file, or one that an instance carries in `metadata.tags`. */
function hasTag(
  template: string,
  tag: string,
  gateway: Gateway,
  definitions: Services['definitions'],
): boolean {
  if (definitions.get(template)?.tags?.includes(tag)) return true;
  return gateway.template(template).instances.some(({ metadata }) => {
    const { tags } = metadata;
    return Array.isArray(tags) && tags.includes(tag);
  });
}

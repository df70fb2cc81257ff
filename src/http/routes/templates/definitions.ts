// Template definitions that admins store through the API, beside those of the folder of templates. Source: ADR 235.

import { templateNotFound } from '../../../domain/errors/registry-errors.ts';
import { SCRATCH } from '../../../templates/definition.ts';
import { instanceInputOf } from '../../../templates/launch.ts';
import { checkedCommand } from '../../callers/command-check.ts';
import { anyObject, LOCATION } from '../../records/schemas.ts';
import { json, located, noContent } from '../../replies/reply.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';
import { TemplateParams } from '../../routing/route-params.ts';

/** A template.json: schemas/template.schema.json. */
const Definition = anyObject({
  name: 'Weather',
  description: 'Forecasts by city.',
  version: '1.0.0',
  transport: 'http',
  endpoint: 'https://weather.example.com/mcp',
});

export const definitionRoutes: readonly HttpRoute[] = [
  defineRoute('PUT', '/gateway/templates/:template/definition', {
    summary: 'Store the definition of a template, in the form of a template.json',
    scope: 'admin',
    request: { params: TemplateParams, body: Definition },
    answers: {
      200: {
        description: 'It replaced the stored one; programs that run keep what they started with',
        body: Definition,
      },
      201: {
        description: 'Stored; the template exists, on all nodes',
        body: Definition,
        headers: LOCATION,
      },
    },
    errors: [
      ...([
        'DUPLICATE_TEMPLATE',
        'DUPLICATE_VIEW',
        'REGISTRY_FULL',
        'ENDPOINT_NOT_ALLOWED',
        'COMMAND_NOT_ALLOWED',
      ] as const),
      'SHUTTING_DOWN',
    ],
    handler: async ({ params: { template }, body, principal, request }, services) => {
      const { storedDefinitions } = services;
      const checked = await storedDefinitions.check(template, body);
      const instance = instanceInputOf(checked, SCRATCH);
      checkedCommand({ template, instance, principal, request }, services);
      const isNew = await storedDefinitions.put(template, checked);
      const stored = storedDefinitions.get(template);
      return isNew ? located(201, `/gateway/templates/${template}/definition`, stored) : json(200, stored);
    },
  }),
  defineRoute('GET', '/gateway/templates/:template/definition', {
    summary: 'The definition of a template that counts, stored or of the folder',
    scope: 'admin',
    request: { params: TemplateParams },
    answers: { 200: { description: 'As it was read', body: Definition } },
    handler: ({ params: { template } }, { definitions }) => {
      const definition = definitions.get(template);
      if (definition === undefined) throw templateNotFound(template);
      return json(200, definition);
    },
  }),
  defineRoute('DELETE', '/gateway/templates/:template/definition', {
    summary: 'Delete the stored definition of a template; its instances and settings remain',
    scope: 'admin',
    request: { params: TemplateParams },
    answers: { 204: { description: 'A template without instances and settings is gone' } },
    errors: ['SHUTTING_DOWN'],
    handler: async ({ params: { template } }, { storedDefinitions }) => {
      await storedDefinitions.delete(template);
      return noContent();
    },
  }),
];

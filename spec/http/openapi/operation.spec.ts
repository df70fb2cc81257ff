import Type from 'typebox';
import * as assert from 'uvu/assert';
import type { SharedAnswers } from '../../../src/http/openapi/answers.ts';
import { operationOf, pathTemplate } from '../../../src/http/openapi/document.ts';
import { schemaWriter } from '../../../src/http/openapi/schema.ts';
import { noContent } from '../../../src/http/reply.ts';
import { defineRoute, type RouteAccess } from '../../../src/http/route.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('an operation of the API description');
const shared = (): SharedAnswers => ({ errors: {}, describe: schemaWriter({}).describe });

const facts: RouteAccess = {
  method: 'POST',
  path: '/servers/:server_id',
  summary: 'A route of the spec',
  scope: ['gateway:read', 'tools:call'],
  answers: { 204: { description: 'Done' } },
  errors: [],
};
const request = {
  params: Type.Object({ server_id: Type.String({ examples: ['everything-1'] }) }),
  query: Type.Object({ wait: Type.Optional(Type.Integer({ minimum: 0, examples: [5] })) }),
  body: Type.Object({ username: Type.String({ examples: ['ada'] }) }),
};

test('has its parameters, its body and the needed scopes', () => {
  const route = defineRoute({ ...facts, request, handler: () => noContent() });
  const { responses: _responses, ...operation } = operationOf(route, shared());
  const content = {
    schema: {
      type: 'object',
      required: ['username'],
      properties: { username: { type: 'string', examples: ['ada'] } },
    },
    example: { username: 'ada' },
  };
  assert.equal(operation, {
    tags: ['Servers'],
    operationId: 'postServersByServerId',
    summary: 'A route of the spec',
    description: 'Needs the scope `gateway:read` or `tools:call`.',
    parameters: [
      {
        ...{ name: 'server_id', in: 'path', required: true },
        ...{ schema: { type: 'string', examples: ['everything-1'] }, example: 'everything-1' },
      },
      {
        ...{ name: 'wait', in: 'query', required: false },
        ...{ schema: { type: 'integer', minimum: 0, examples: [5] }, example: 5 },
      },
    ],
    requestBody: { required: true, content: { 'application/json': content } },
    security: [
      { login: ['gateway:read'] },
      { bearer: ['gateway:read'] },
      { apiKey: ['gateway:read'] },
      { login: ['tools:call'] },
      { bearer: ['tools:call'] },
      { apiKey: ['tools:call'] },
    ],
    'x-required-scopes': ['gateway:read', 'tools:call'],
  });
});

test('offers the form first where a form is taken', () => {
  const route = defineRoute({ ...facts, request, reader: 'form', handler: () => noContent() });
  const { content } = Object(operationOf(route, shared()).requestBody);
  assert.equal(Object.keys(content), ['application/x-www-form-urlencoded', 'application/json']);
});

test('needs no credentials on an open route', () => {
  const route = defineRoute({
    ...facts,
    scope: 'open',
    request: { params: request.params },
    handler: () => noContent(),
  });
  const { security, description, 'x-required-scopes': scopes } = operationOf(route, shared());
  assert.equal([security, description, scopes], [[], 'Needs no credentials.', []]);
});

test('prefers the example of a body to those of its fields', () => {
  const body = Type.Object(request.body.properties, { examples: [{ username: 'eve' }] });
  const route = defineRoute({ ...facts, request: { ...request, body }, handler: () => noContent() });
  assert.is(
    Object(operationOf(route, shared()).requestBody).content['application/json'].example.username,
    'eve',
  );
});

test('lists the headers that a request may carry', () => {
  const requestHeaders = { 'Mcp-Session-Id': 'The session' };
  const route = defineRoute({ ...facts, path: '/x', requestHeaders, handler: () => noContent() });
  assert.equal(operationOf(route, shared()).parameters, [
    {
      ...{ name: 'Mcp-Session-Id', in: 'header', required: false, description: 'The session' },
      schema: { type: 'string' },
    },
  ]);
});

test('writes parameters of a path as OpenAPI does', () => {
  assert.is(pathTemplate('/mcp/:template/x/:instance_id'), '/mcp/{template}/x/{instance_id}');
  assert.is(pathTemplate('/openapi.json'), '/openapi.json');
});

test.run();

import Type from 'typebox';
import * as assert from 'uvu/assert';
import { ErrorBody } from '../../../src/http/error-reply.ts';
import { answersOf, type SharedAnswers } from '../../../src/http/openapi/answers.ts';
import { schemaWriter } from '../../../src/http/openapi/schema.ts';
import type { RouteAccess } from '../../../src/http/route.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the answers of an operation');
const start = (): SharedAnswers => ({ errors: {}, describe: schemaWriter({ ErrorBody }).describe });

const facts: RouteAccess = {
  method: 'GET',
  path: '/x',
  summary: 'A route of the spec',
  scope: 'gateway:read',
  answers: { 200: { description: 'Fine', body: Type.Object({ status: Type.Literal('fine') }) } },
  errors: [],
};

test('are a success with schema, example and headers', () => {
  assert.equal(answersOf(facts, start()), {
    200: {
      description: 'Fine',
      headers: pointers('X-Request-ID', 'X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'),
      content: {
        'application/json': {
          schema: {
            type: 'object',
            required: ['status'],
            properties: { status: { type: 'string', const: 'fine' } },
          },
          example: { status: 'fine' },
        },
      },
    },
  });
});

test('have no limit where nobody is asked who he is, and name the instance where one answers', () => {
  const open = answersOf({ ...facts, scope: 'open', answers: { 204: { description: 'Done' } } }, start());
  assert.equal(open, { 204: { description: 'Done', headers: pointers('X-Request-ID') } });
  const called = answersOf({ ...facts, errors: ['NO_HEALTHY_INSTANCE'] }, start());
  assert.ok('X-Instance-ID' in Object(called[200]).headers);
});

test('group errors by status and share them between routes with the same ones', () => {
  const shared = start();
  const errors = ['SERVER_NOT_FOUND', 'TEMPLATE_NOT_FOUND', 'RATE_LIMIT_EXCEEDED'] as const;
  const first = answersOf({ ...facts, errors }, shared);
  const second = answersOf({ ...facts, errors: errors.toReversed() }, shared);
  const open = answersOf({ ...facts, scope: 'open', errors }, shared);
  assert.equal(first[404], { $ref: '#/components/responses/SERVER_NOT_FOUND.TEMPLATE_NOT_FOUND.limited' });
  assert.equal(second[404], first[404]);
  assert.equal(open[404], { $ref: '#/components/responses/SERVER_NOT_FOUND.TEMPLATE_NOT_FOUND' });
  const { description, content } = Object(shared.errors['SERVER_NOT_FOUND.TEMPLATE_NOT_FOUND']);
  assert.is(description, 'Not found: `SERVER_NOT_FOUND`, `TEMPLATE_NOT_FOUND`');
  const { schema, examples } = content['application/json'];
  assert.equal(schema, {
    allOf: [
      { $ref: '#/components/schemas/ErrorBody' },
      {
        type: 'object',
        properties: { error_code: { type: 'string', enum: ['SERVER_NOT_FOUND', 'TEMPLATE_NOT_FOUND'] } },
      },
    ],
  });
  assert.is(examples.SERVER_NOT_FOUND.value.error_code, 'SERVER_NOT_FOUND');
  assert.ok('Retry-After' in Object(shared.errors['RATE_LIMIT_EXCEEDED.limited']).headers);
});

test('tell both when an answer is an error and more', () => {
  const own = { description: 'Not yet', body: Type.Object({ status: Type.Literal('starting') }) };
  const shared = start();
  const { 503: answer } = answersOf({ ...facts, answers: { 503: own }, errors: ['SHUTTING_DOWN'] }, shared);
  const { description, content } = Object(answer);
  assert.is(description, 'Not yet');
  const { schema, examples } = content['application/json'];
  assert.equal(schema.allOf[0].properties.status, { type: 'string', const: 'starting' });
  assert.equal(schema.allOf[1].allOf[1].properties.error_code.enum, ['SHUTTING_DOWN']);
  const { status, error_code } = examples.SHUTTING_DOWN.value;
  assert.equal([status, error_code], ['starting', 'SHUTTING_DOWN']);
  assert.equal(shared.errors, {});
});

test('tell one or the other when a refusal has words of its own', () => {
  const body = Type.Object({ error: Type.Literal(-32_000) });
  const own = { description: 'Not now', body, example: { error: -32_000 }, isApart: true };
  const { 503: answer } = answersOf({ ...facts, answers: { 503: own }, errors: ['SHUTTING_DOWN'] }, start());
  const { description, content, headers } = Object(answer);
  assert.is(description, 'Not now');
  const { schema, examples } = content['application/json'];
  assert.equal(schema.anyOf[0].properties.error, { type: 'number', const: -32_000 });
  assert.equal(schema.anyOf[1].allOf[1].properties.error_code.enum, ['SHUTTING_DOWN']);
  assert.equal(examples.own.value, { error: -32_000 });
  assert.is(examples.SHUTTING_DOWN.value.error_code, 'SHUTTING_DOWN');
  assert.ok('Retry-After' in headers);
});

test('name the instance, and the event, where MCP is spoken', () => {
  const types = ['application/json', 'text/event-stream'];
  const answers = { 200: { description: 'Any', body: Type.Object({}), types, event: 'message' } };
  const { headers, content } = Object(answersOf({ ...facts, speaks: 'json-rpc', answers }, start())[200]);
  assert.ok('X-Instance-ID' in headers);
  assert.is(content['text/event-stream'].example, 'event: message\ndata: {}\n\n');
});

test('show no sample of an event stream that is the only answer: ReDoc would break the policy of its page', () => {
  const answers = { 200: { description: 'Any', body: Type.Object({}), types: ['text/event-stream'] } };
  const { content } = Object(answersOf({ ...facts, answers }, start())[200]);
  assert.equal(content, { 'text/event-stream': {} });
});

test('show an event stream as text, and files by their types', () => {
  const types = ['application/json', 'text/event-stream', 'text/html', 'image/png'];
  const answers = { 200: { description: 'Any', body: Type.Object({ a: Type.Literal(1) }), types } };
  const { content } = Object(answersOf({ ...facts, answers }, start())[200]);
  assert.equal(Object.keys(content), types);
  assert.equal(content['text/event-stream'], {
    schema: { type: 'string' },
    example: 'event: result\ndata: {"a":1}\n\n',
  });
  assert.equal(
    [content['text/html'], content['image/png']],
    [{ schema: { type: 'string' } }, { schema: {} }],
  );
});

test('describe the headers of their own', () => {
  const answers = { 200: { description: 'A list', headers: { 'X-Total-Count': 'How many there are' } } };
  const { headers } = Object(answersOf({ ...facts, answers }, start())[200]);
  assert.equal(headers['X-Total-Count'], { description: 'How many there are', schema: { type: 'string' } });
});

function pointers(...names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

test.run();

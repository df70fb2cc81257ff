// The forms of the console: the control for a JSON Schema, and the initial value of a form.

import * as assert from 'uvu/assert';
import { withoutSecretDefaults } from '../../src/templates/config-schema.ts';
import { controlOf, formSchema, initialValue, resolved, type Schema } from '../../web/src/schema.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('forms of the console');

const kindOf = (schema: Schema): string => controlOf(schema).kind;

test('have a control for every simple type', () => {
  assert.equal(
    [{ type: 'string' }, { type: 'integer' }, { type: 'number' }, { type: 'boolean' }].map(controlOf),
    [
      { kind: 'text', format: '', isLong: false },
      { kind: 'number', isWhole: true },
      { kind: 'number', isWhole: false },
      { kind: 'boolean' },
    ],
  );
  assert.equal(controlOf({ type: ['string', 'null'], format: 'email', maxLength: 5_000 }), {
    kind: 'text',
    format: 'email',
    isLong: true,
  });
});

test('read choices from every form of them in a schema', () => {
  const choices = [
    { value: 'a', label: 'A' },
    { value: 'b', label: 'B' },
  ];
  const titled = [
    { const: 'a', title: 'A' },
    { const: 'b', title: 'B' },
  ];
  assert.equal(controlOf({ enum: ['a', 'b'], enumNames: ['A', 'B'] }), { kind: 'choice', choices });
  assert.equal(controlOf({ oneOf: titled }), { kind: 'choice', choices });
  assert.equal(controlOf({ type: 'array', items: { anyOf: titled } }), { kind: 'choices', choices });
  assert.equal(controlOf({ enum: [1, null] }), {
    kind: 'choice',
    choices: [
      { value: 1, label: '1' },
      { value: null, label: 'null' },
    ],
  });
});

test('show what a server writes in place of texts and numbers', () => {
  const odd = { toString: 1, valueOf: 1 };
  const text = { kind: 'text', format: '', isLong: false };
  assert.equal(controlOf({ type: 'string', format: odd, maxLength: odd }), text);
  const choices = [{ value: odd, label: '{"toString":1,"valueOf":1}' }];
  for (const schema of [
    { enum: [odd] },
    { enum: [odd], enumNames: [odd] },
    { oneOf: [{ const: odd, title: odd }] },
  ])
    assert.equal(controlOf(schema), { kind: 'choice', choices });
});

test('edit schemas without a control as JSON', () => {
  const schemas = [
    {},
    { type: 'object' },
    { type: 'array' },
    { type: ['string', 'number'] },
    { anyOf: [{}, {}] },
  ];
  assert.equal(schemas.map(kindOf), ['json', 'json', 'json', 'json', 'json']);
});

test('give a list the control of its entries, and an object one for each property', () => {
  assert.equal(controlOf({ type: 'array', items: { type: 'string' } }), {
    kind: 'list',
    items: { type: 'string' },
  });
  assert.equal(controlOf({ properties: { a: { type: 'string' }, b: true } }), {
    kind: 'object',
    properties: [
      ['a', { type: 'string' }],
      ['b', {}],
    ],
  });
});

test('resolve references, single alternatives and null', () => {
  const root = { $defs: { 'a/b': { type: 'string', title: 'T' } } };
  assert.equal(resolved({ $ref: '#/$defs/a~1b', description: 'D' }, root), {
    type: 'string',
    title: 'T',
    description: 'D',
  });
  assert.equal(resolved({ anyOf: [{ type: 'null' }, { type: 'number' }] }, {}), { type: 'number' });
  assert.equal(resolved({ allOf: [{ type: 'boolean' }] }, {}), { type: 'boolean' });
});

test('stop at a reference to itself, an external one and one that is no URI', () => {
  const root = { $defs: { node: { $ref: '#/$defs/node' } } };
  assert.equal(kindOf(resolved({ $ref: '#/$defs/node' }, root)), 'json');
  for (const $ref of ['https://example.org/schema', '#/%']) assert.equal(resolved({ $ref }, {}), {});
});

test('edit a recursive schema with too many fields as JSON', () => {
  const tree = (names: readonly string[]): Schema => ({
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { $ref: '#' }])),
  });
  const narrow = tree(['a', 'b']);
  assert.is(formSchema(narrow), narrow);
  const wide = tree(Array.from({ length: 50 }, (_, index) => `p${index}`));
  assert.is(kindOf(formSchema(wide)), 'json');
});

test('begin with the defaults, and with empty values of required fields', () => {
  const schema = {
    type: 'object',
    properties: {
      name: { type: 'string', default: 'Ada' },
      tags: { type: 'array', items: { type: 'string' } },
      more: { type: 'array', items: { type: 'string' } },
      sure: { type: 'boolean' },
      kind: { const: 'x' },
      deep: { type: 'object', properties: { count: { type: 'integer', default: 0 } } },
      bare: { type: 'object', properties: { text: { type: 'string' } } },
    },
    required: ['tags', 'sure'],
  };
  assert.equal(initialValue(schema), { name: 'Ada', tags: [], sure: false, kind: 'x', deep: { count: 0 } });
});

test('leave a default to the gateway that only it has: a placeholder, and a secret', () => {
  const properties = {
    token: { type: 'string', sensitive: true, default: 'hunter2' },
    words: { $ref: '#/$defs/words' },
    folder: { type: 'string', default: `${'$'}{SCRATCH}/notes` },
    mark: { type: 'string', default: '*' },
  };
  const $defs = {
    words: { type: 'array', items: { type: 'string' }, sensitive: true, default: ['hunter2'] },
  };
  const written = { type: 'object', properties, $defs, required: Object.keys(properties) };
  const shown = withoutSecretDefaults(written);
  assert.not.match(JSON.stringify(shown), 'hunter2');
  assert.equal(initialValue(shown), { mark: '*' });
});

test.run();

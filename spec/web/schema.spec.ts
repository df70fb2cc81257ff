// The forms of the console: which control a JSON Schema needs, and what a form begins with.

import * as assert from 'uvu/assert';
import { controlOf, formSchema, initialValue, resolved, type Schema } from '../../web/src/schema.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('forms of the console');

const kindOf = (schema: Schema): string => controlOf(schema).kind;

test('every simple type has a control of its own', () => {
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

test('choices are read in each way a schema can say them', () => {
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

test('what has no control is edited as JSON', () => {
  const schemas = [
    {},
    { type: 'object' },
    { type: 'array' },
    { type: ['string', 'number'] },
    { anyOf: [{}, {}] },
  ];
  assert.equal(schemas.map(kindOf), ['json', 'json', 'json', 'json', 'json']);
});

test('a list has the control of its entries, an object one for each property', () => {
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

test('references, single alternatives and null are resolved', () => {
  const root = { $defs: { 'a/b': { type: 'string', title: 'T' } } };
  assert.equal(resolved({ $ref: '#/$defs/a~1b', description: 'D' }, root), {
    type: 'string',
    title: 'T',
    description: 'D',
  });
  assert.equal(resolved({ anyOf: [{ type: 'null' }, { type: 'number' }] }, {}), { type: 'number' });
  assert.equal(resolved({ allOf: [{ type: 'boolean' }] }, {}), { type: 'boolean' });
});

test('a reference to itself, and one to elsewhere, end', () => {
  const root = { $defs: { node: { $ref: '#/$defs/node' } } };
  assert.equal(kindOf(resolved({ $ref: '#/$defs/node' }, root)), 'json');
  assert.equal(resolved({ $ref: 'https://example.org/schema' }, {}), {});
});

test('a schema that makes too many fields of itself is edited as JSON', () => {
  const tree = (names: readonly string[]): Schema => ({
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { $ref: '#' }])),
  });
  const narrow = tree(['a', 'b']);
  assert.is(formSchema(narrow), narrow);
  const wide = tree(Array.from({ length: 50 }, (_, index) => `p${index}`));
  assert.is(kindOf(formSchema(wide)), 'json');
});

test('a form begins with the defaults, and with what required fields cannot lack', () => {
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

test.run();

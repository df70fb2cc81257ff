import Type, { type TSchema } from 'typebox';
import * as assert from 'uvu/assert';
import { exampleOf, schemaWriter } from '../../../src/http/openapi/schema.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('schemas of the API description');
const Weight = Type.Object({ weight: Type.Integer() });

test('are plain JSON Schema', () => {
  const { describe } = schemaWriter({});
  const schema = Type.Object({ a: Type.Optional(Type.String({ maxLength: 3 })), b: Type.Unknown() });
  assert.equal(describe(schema), {
    type: 'object',
    required: ['b'],
    properties: { a: { type: 'string', maxLength: 3 }, b: {} },
  });
});

test('say the type of an enumeration of words', () => {
  const { describe } = schemaWriter({});
  assert.equal(describe(Type.Enum(['a', 'b'])), { type: 'string', enum: ['a', 'b'] });
  assert.equal(describe(Type.Enum([1, 'b'])), { enum: [1, 'b'] });
});

test('write a record of any name as such, and keep a pattern that means something', () => {
  const { describe } = schemaWriter({});
  assert.equal(describe(Type.Record(Type.String(), Type.Integer())), {
    type: 'object',
    additionalProperties: { type: 'integer' },
  });
  const pattern = '^[A-Z]+$';
  assert.equal(
    describe(Type.Record(Type.String({ pattern }), Type.Integer(), { additionalProperties: false })),
    {
      type: 'object',
      patternProperties: { [pattern]: { type: 'integer' } },
      additionalProperties: false,
    },
  );
});

test('point to a schema with a name, wherever it stands and however it was wrapped', () => {
  const { describe } = schemaWriter({ Weight });
  const pointer = { $ref: '#/components/schemas/Weight' };
  assert.equal(describe(Weight), pointer);
  assert.equal(describe(Type.Array(Weight)), { type: 'array', items: pointer });
  assert.equal(describe(Type.Object({ w: Type.Optional(Weight) })), {
    type: 'object',
    properties: { w: pointer },
  });
  assert.equal(describe(Type.Object({ weight: Type.Number() })).$ref, undefined);
});

test('write out each schema with a name once, with pointers to the others', () => {
  const { named } = schemaWriter({ Weight, Holder: Type.Object({ held: Weight }) });
  assert.equal(named, {
    Weight: { type: 'object', required: ['weight'], properties: { weight: { type: 'integer' } } },
    Holder: {
      type: 'object',
      required: ['held'],
      properties: { held: { $ref: '#/components/schemas/Weight' } },
    },
  });
});

const everything = Type.String({ examples: ['everything'] });

test('have examples: the first example that a schema carries, else made of its fields', () => {
  const schema = Type.Object({ template_name: everything, weight: Type.Integer({ examples: [2] }) });
  assert.equal(exampleOf(schema), { template_name: 'everything', weight: 2 });
  assert.equal(exampleOf(Type.Object({ weight: Type.Integer() }, { examples: [{ weight: 7 }] })), {
    weight: 7,
  });
});

test('have examples without optional fields without an example', () => {
  const weight = Type.Optional(Type.Integer({ examples: [2] }));
  const schema = Type.Object({ weight, odd: Type.Optional(Type.Integer()) });
  assert.equal(exampleOf(schema), { weight: 2 });
});

test('have examples of the first variant, all parts of an intersection, and one entry of lists and records', () => {
  const cases: readonly (readonly [TSchema, unknown])[] = [
    [Type.Union([Type.Literal('a'), Type.Null()]), 'a'],
    [
      Type.Intersect([Type.Object({ a: Type.Literal(1) }), Type.Object({ b: Type.Literal(2) })]),
      { a: 1, b: 2 },
    ],
    [Type.Array(Type.Integer({ minimum: 7 })), [7]],
    [Type.Record(Type.String(), Type.Boolean()), {}],
    [Type.Record(Type.String(), Type.Boolean(), { propertyNames: everything }), { everything: true }],
    [Type.Enum(['x', 'y']), 'x'],
    [Type.String(), 'text'],
    [Type.Null(), null],
  ];
  for (const [schema, example] of cases) assert.equal(exampleOf(schema), example);
});

test('have no example rather than a wrong one', () => {
  assert.throws(() => exampleOf(Type.String({ pattern: '^[0-9]{17}$' })), /no example fits/);
});

test.run();

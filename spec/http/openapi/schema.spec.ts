import Type from 'typebox';
import * as assert from 'uvu/assert';
import { schemaWriter } from '../../../src/http/openapi/schema.ts';
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

test.run();

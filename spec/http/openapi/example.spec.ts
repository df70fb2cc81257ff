import Type, { type TSchema } from 'typebox';
import * as Value from 'typebox/value';
import * as assert from 'uvu/assert';
import { exampleOf } from '../../../src/http/openapi/example.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('examples of schemas');

const everything = Type.String({ examples: ['everything'] });

test('are the first example that a schema carries, else made of its fields', () => {
  const schema = Type.Object({ template_name: everything, weight: Type.Integer({ examples: [2] }) });
  assert.equal(exampleOf(schema), { template_name: 'everything', weight: 2 });
  assert.equal(exampleOf(Type.Object({ weight: Type.Integer() }, { examples: [{ weight: 7 }] })), {
    weight: 7,
  });
});

test('leave out optional fields without an example', () => {
  const weight = Type.Optional(Type.Integer({ examples: [2] }));
  const schema = Type.Object({ weight, odd: Type.Optional(Type.Integer()) });
  assert.equal(exampleOf(schema), { weight: 2 });
});

test('show the first variant, all parts of an intersection, and one entry of lists and records', () => {
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

test('are refused rather than wrong', () => {
  assert.throws(() => exampleOf(Type.String({ pattern: '^[0-9]{17}$' })), /no example fits/);
});

test('fit every schema that a route declares', () => {
  for (const { request, answers } of ROUTES) {
    const bodies = Object.values(answers).map(({ body }) => body);
    for (const schema of [request.params, request.query, request.body, ...bodies]) {
      if (schema !== undefined) assert.ok(Value.Check(schema, exampleOf(schema)));
    }
  }
});

test.run();

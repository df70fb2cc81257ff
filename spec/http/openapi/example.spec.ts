import Type, { type TSchema } from 'typebox';
import * as Value from 'typebox/value';
import * as assert from 'uvu/assert';
import { exampleOf } from '../../../src/http/openapi/example.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('examples of schemas');

test('take the sample of a field where it fits', () => {
  assert.equal(exampleOf(Type.Object({ template_name: Type.String(), weight: Type.Integer() })), {
    template_name: 'everything',
    weight: 2,
  });
  assert.equal(exampleOf(Type.Object({ weight: Type.Literal('heavy') })), { weight: 'heavy' });
});

test('leave out optional fields that nobody has a sample of', () => {
  const schema = Type.Object({ weight: Type.Optional(Type.Integer()), odd: Type.Optional(Type.Integer()) });
  assert.equal(exampleOf(schema), { weight: 2 });
});

test('know a user from a key by their other fields', () => {
  const id = Type.String();
  const user = exampleOf(Type.Object({ id, is_superuser: Type.Boolean() }));
  const key = exampleOf(Type.Object({ id, permissions: Type.Array(Type.String()) }));
  assert.equal(
    [Object(user).id, Object(key).id],
    ['3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10', '00112233445566ff'],
  );
});

test('show the first variant, all parts of an intersection, and one entry of lists and records', () => {
  const cases: readonly (readonly [TSchema, unknown])[] = [
    [Type.Union([Type.Literal('a'), Type.Null()]), 'a'],
    [
      Type.Intersect([Type.Object({ a: Type.Literal(1) }), Type.Object({ b: Type.Literal(2) })]),
      { a: 1, b: 2 },
    ],
    [Type.Array(Type.Integer({ minimum: 7 })), [7]],
    [Type.Record(Type.String(), Type.Boolean()), { 'everything-1': true }],
    [Type.Record(Type.String({ pattern: '^[0-9]$' }), Type.Boolean()), {}],
    [
      Type.Object({ templates: Type.Record(Type.String(), Type.Null()) }),
      { templates: { everything: null } },
    ],
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

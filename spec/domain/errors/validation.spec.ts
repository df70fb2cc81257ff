// Validation of inputs: the issues of a schema for programs and for people, and strings that a schema does not check.

import Type, { type TSchema } from 'typebox';
import { Settings } from 'typebox/system';
import * as assert from 'uvu/assert';
import { compileShape, inspect, issueLines } from '../../../src/domain/errors/validation.ts';
import { InstanceInput } from '../../../src/domain/instances/instance.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { NOT_UNICODE } from '../../../src/domain/text.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('validation');

const firstIssue = (schema: TSchema, value: unknown) =>
  compileShape(Type.Object({ a: schema }), 'body')
    .issues({ a: value })
    .map(({ type, msg }) => `${type}: ${msg}`)[0];

/** Invalid values, with the issue in the words of pydantic. */
const WORDS: readonly (readonly [TSchema, unknown, string])[] = [
  [Type.String(), 1, 'string_type: Input should be a valid string'],
  [Type.Integer(), 'x', 'int_type: Input should be a valid integer'],
  [Type.Integer(), Number.NaN, 'int_type: Input should be a valid integer'],
  [
    Type.Integer(),
    1.5,
    'int_from_float: Input should be a valid integer, got a number with a fractional part',
  ],
  [Type.Number(), 'x', 'float_type: Input should be a valid number'],
  [Type.Boolean(), 1, 'bool_type: Input should be a valid boolean'],
  [Type.Object({}), [], 'dict_type: Input should be a valid dictionary (a JSON object)'],
  [Type.Array(Type.String()), {}, 'list_type: Input should be a valid list'],
  [Type.Null(), 1, 'none_type: Input should be null'],
  [Type.Enum(['a', 'b', 'c']), 'd', "enum: Input should be 'a', 'b' or 'c'"],
  [Type.Literal('a'), 'd', "literal_error: Input should be 'a'"],
  [Type.String({ pattern: '^x$' }), 'y', "string_pattern_mismatch: String should match pattern '^x$'"],
  [Type.String({ pattern: '^x$', 'x-words': 'an x' }), 'y', 'string_pattern_mismatch: String should be an x'],
  [
    Type.String({ pattern: '^x$', description: 'text of the author of a template' }),
    'y',
    "string_pattern_mismatch: String should match pattern '^x$'",
  ],
  [Type.String({ minLength: 1 }), '', 'string_too_short: String should have at least 1 character'],
  [Type.String({ maxLength: 2 }), 'abc', 'string_too_long: String should have at most 2 characters'],
  [Type.Array(Type.Any(), { minItems: 1 }), [], 'too_short: List should have at least 1 item'],
  [Type.Array(Type.Any(), { maxItems: 0 }), [1], 'too_long: List should have at most 0 items'],
  [Type.Integer({ minimum: 1 }), 0, 'greater_than_equal: Input should be greater than or equal to 1'],
  [Type.Integer({ maximum: 1 }), 2, 'less_than_equal: Input should be less than or equal to 1'],
  [Type.Number({ exclusiveMinimum: 1 }), 1, 'greater_than: Input should be greater than 1'],
  [Type.Number({ exclusiveMaximum: 1 }), 1, 'less_than: Input should be less than 1'],
];

test('describes issues in the words of pydantic', () => {
  for (const [schema, value, words] of WORDS) assert.is(firstIssue(schema, value), words);
  const issue = firstIssue(Type.Array(Type.Any(), { uniqueItems: true }), [1, 1]) ?? '';
  assert.match(issue, /^value_error: Value error, /);
});

test('reports a parsing issue, not a wrong type, for a text in a query', () => {
  const shape = compileShape(
    Type.Object({ a: Type.Integer(), b: Type.Boolean(), c: Type.Number() }),
    'query',
  );
  const issues = shape.issues({ a: 'x', b: 'x', c: 'x' }).map(({ loc, type }) => [...loc, type]);
  assert.equal(issues, [
    ['query', 'a', 'int_parsing'],
    ['query', 'b', 'bool_parsing'],
    ['query', 'c', 'float_parsing'],
  ]);
});

test('has list indexes as numbers and unusual keys unchanged in the path of an issue', () => {
  const shape = compileShape(
    Type.Object({ list: Type.Array(Type.String()), '0': Type.String(), 'a/b~c': Type.String() }),
    'body',
  );
  const locs = shape.issues({ list: ['a', 1], '0': 1, 'a/b~c': 1 }).map(({ loc }) => loc);
  assert.equal(locs, [
    ['body', '0'],
    ['body', 'list', 1],
    ['body', 'a/b~c'],
  ]);
});

test('never repeats the value of an invalid field', () => {
  const secret = 'hunter2';
  const value = {
    id: `-${secret}`,
    endpoint: [secret],
    weight: secret,
    transport: secret,
    env_vars: { A: [secret] },
  };
  const text = JSON.stringify(compileShape(InstanceInput, 'body').issues(value));
  assert.not.match(text, /hunter2/);
  assert.is(JSON.parse(text).length, 5);
});

test('reports the issues of the alternative that was probably meant', () => {
  const Flat = Type.Object({ name: Type.String(), x: Type.Integer() }, { additionalProperties: false });
  const Nested = Type.Object(
    { name: Type.String(), inner: Type.Object({ x: Type.Integer() }) },
    { additionalProperties: false },
  );
  const shape = compileShape(Type.Union([Nested, Flat]), 'body');
  assert.ok(shape.accepts({ name: 'a', inner: { x: 1 } }));
  assert.ok(shape.accepts({ name: 'a', x: 1 }));
  const locs = (value: unknown) => shape.issues(value).map(({ loc }) => loc.join('.'));
  assert.equal(locs({ name: 'a', inner: { x: 'b' } }), ['body.inner.x']);
  assert.equal(locs({ name: 'a', x: 'b' }), ['body.x']);
  assert.equal(locs({ name: 'a' }), ['body.inner']);
  assert.equal(locs(null), ['body']);
});

test('reports the issues of the alternative with fewer requirements if none fits better', () => {
  const Flat = Type.Object({ x: Type.Optional(Type.Integer()) }, { additionalProperties: false });
  const Nested = Type.Object({ inner: Flat }, { additionalProperties: false });
  const shape = compileShape(Type.Union([Nested, Flat]), 'body');
  const places = [{ y: 1 }, { inner: {}, x: 1 }].map((value) => shape.issues(value)[0]?.loc.join('.'));
  assert.equal(places, ['body.y', 'body.x']);
});

test('reports the issues of a nullable field without offering null', () => {
  const nullable = (schema: TSchema) => Type.Union([schema, Type.Null()]);
  const shape = compileShape(
    Type.Object({
      a: nullable(Type.Enum(['x', 'y'])),
      b: nullable(Type.Integer({ minimum: 1 })),
      c: Type.Optional(nullable(Type.Array(Type.String({ pattern: '^x$' })))),
    }),
    'body',
  );
  assert.ok(shape.accepts({ a: null, b: null, c: null }));
  const said = (value: unknown) => shape.issues(value).map(({ loc, type }) => `${loc.join('.')} ${type}`);
  assert.equal(said({ a: 'z', b: 0 }), ['body.a enum', 'body.b greater_than_equal']);
  assert.equal(said({ a: 1, b: 'x' }), ['body.a enum', 'body.b int_type']);
  const list = said({ a: 'x', b: 1, c: ['x', 'y', 1] });
  assert.equal(list, ['body.c.1 string_pattern_mismatch', 'body.c.2 string_type']);
});

test('the settings of TypeBox, which an embedding program shares, are left unchanged', async () => {
  await import('../../../src/index.ts');
  const after = { ...Settings.Get() };
  Settings.Reset();
  assert.equal(after, { ...Settings.Get() });
  // A program's own setting neither changes the issues nor is changed by them.
  Settings.Set({ maxErrors: 3 });
  try {
    const shape = compileShape(Type.Array(Type.String()), 'body');
    assert.is(shape.issues(Array.from({ length: 100 }, () => 1)).length, 64);
    assert.is(Settings.Get().maxErrors, 3);
  } finally {
    Settings.Reset();
  }
});

test('limits the number of issues to 64, and the length of their paths', () => {
  const shape = compileShape(
    Type.Object({ a: Type.Array(Type.String()) }, { additionalProperties: false }),
    'body',
  );
  const many = { a: Array.from({ length: 1_000 }, () => 1) };
  assert.is(shape.issues(many).length, 64);
  const fields = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`f${index}`, 1]));
  assert.ok(shape.issues(fields).length <= 64);
  const [issue] = shape.issues({ a: [], ['x'.repeat(10_000)]: 1 });
  assert.is(String(issue?.loc[1]).length, LIMITS.locCharacters);
});

test('names the near field of one that is not known, at any depth, and of the variant that is reported', () => {
  const known = Type.Object({ weight: Type.Optional(Type.Number()) }, { additionalProperties: false });
  const open = { additionalProperties: false };
  const schema = Type.Object({ list: Type.Array(Type.Union([Type.Null(), known])), 'a/b': known }, open);
  const value = { list: [{ weigth: 1 }, { other: 1 }], 'a/b': { wieght: 1 }, lists: 1 };
  const issues = compileShape(schema, 'body').issues(value);
  assert.equal(issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).toSorted(), [
    'body.a/b.wieght: Extra inputs are not permitted; did you mean "weight"?',
    'body.list.0.weigth: Extra inputs are not permitted; did you mean "weight"?',
    'body.list.1.other: Extra inputs are not permitted',
    'body.lists: Extra inputs are not permitted; did you mean "list"?',
  ]);
  assert.ok(issueLines(issues).includes('lists: unknown field; did you mean "list"?'));
});

test('reports __proto__ as an extra field', () => {
  const shape = compileShape(
    Type.Object({ a: Type.Optional(Type.String()) }, { additionalProperties: false }),
    'body',
  );
  const found = shape.issues(JSON.parse('{"__proto__":{"a":1}}')).map(({ loc }) => loc);
  assert.equal(found, [['body', '__proto__']]);
});

test('describes each fault once in a line with its path and without its value', () => {
  const names = Type.Record(Type.String({ pattern: '^[A-Z]+$' }), Type.String(), {
    additionalProperties: false,
  });
  const schema = Type.Object(
    { kind: Type.Enum(['a', 'b']), names, list: Type.Array(Type.Integer()) },
    { additionalProperties: false },
  );
  const value = { kind: 's3cret', names: { A: 1, 'b/~': 'x' }, list: [1, 's3cret'], more: 1 };
  const lines = issueLines(compileShape(schema, 'body').issues(value), (field) => `here.${field}`);
  assert.equal(lines.toSorted(), [
    "here.kind: Input should be 'a' or 'b'",
    'here.list[1]: Input should be a valid integer',
    'here.more: unknown field',
    'here.names.A: Input should be a valid string',
    'here.names["b/~"]: is not a valid name',
  ]);
});

test('finds strings with NUL or half surrogates at any place, with their path', () => {
  const body = { a: ['x', { b: '\ud800' }], c: '\0', 'd\0': 1, e: null, f: 3 };
  assert.equal(inspect(body), [
    { loc: ['body', 'a', 1, 'b'], ...NOT_UNICODE },
    { loc: ['body', 'c'], ...NOT_UNICODE },
    { loc: ['body'], ...NOT_UNICODE },
  ]);
});

test('allows nesting up to the limit and not one level more', () => {
  const nested = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
  assert.equal(inspect(nested(LIMITS.nestingDepth)), []);
  const found = inspect(nested(LIMITS.nestingDepth + 1)).map(({ loc, type }) => ({ loc, type }));
  assert.equal(found, [{ loc: ['body'], type: 'value_error' }]);
});

test('limits the number of invalid strings and the length of a key in their path', () => {
  const long = 'k'.repeat(10_000);
  const issues = inspect({ list: Array.from({ length: 1_000 }, () => '\0'), [long]: '\0' });
  assert.is(issues.length, 64);
  assert.equal(inspect({ [long]: '\0' })[0]?.loc, ['body', 'k'.repeat(LIMITS.locCharacters)]);
});

test.run();

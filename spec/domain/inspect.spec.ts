import * as assert from 'uvu/assert';
import { LIMITS } from '../../src/domain/limits.ts';
import { NOT_UNICODE } from '../../src/domain/text.ts';
import { inspect } from '../../src/domain/validation.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('inspecting a body');

test('finds bad strings anywhere and says where', () => {
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
  assert.equal(
    inspect(nested(LIMITS.nestingDepth + 1)).map(({ loc, type }) => ({ loc, type })),
    [{ loc: ['body'], type: 'value_error' }],
  );
});

test('reports a bounded number of findings and never a whole key', () => {
  const long = 'k'.repeat(10_000);
  const issues = inspect({ list: Array.from({ length: 1_000 }, () => '\0'), [long]: '\0' });
  assert.is(issues.length, LIMITS.validationIssues);
  assert.equal(inspect({ [long]: '\0' })[0]?.loc, ['body', 'k'.repeat(LIMITS.locCharacters)]);
});

test.run();

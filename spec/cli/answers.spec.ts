import * as assert from 'uvu/assert';
import { fields, instancesOf, shownReasonOf, shownStateOf } from '../../src/cli/answers.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('answers');

test('are objects, and empty ones when they are not', () => {
  assert.equal(fields({ a: 1 }), { a: 1 });
  for (const value of [undefined, null, 'text', 7, true]) assert.equal(fields(value), {});
});

test('hold the instances of all templates, in their order', () => {
  const registry = {
    templates: { b: { instances: [{ id: 1 }, { id: 2 }] }, a: { instances: [{ id: 3 }] }, none: {}, odd: 7 },
  };
  assert.equal(
    instancesOf(registry).map(({ id }) => id),
    [1, 2, 3],
  );
  for (const value of [undefined, {}, { templates: 'x' }]) assert.equal(instancesOf(value), []);
});

test('give a reason as part of a sentence', () => {
  assert.equal(
    ['It broke.', 'it broke', null, undefined].map((reason) => shownReasonOf({ reason })),
    ['It broke', 'it broke', '', ''],
  );
});

test('call a healthy instance that gets no calls ejected, and say why', () => {
  const ejection = { reason: '5 calls in a row failed', until: '2026-01-01T00:00:05.000Z' };
  assert.equal(
    [{ state: 'healthy' }, { state: 'healthy', ejection }, { state: 'unhealthy', ejection }].map(
      shownStateOf,
    ),
    ['healthy', 'ejected', 'unhealthy'],
  );
  assert.equal(
    [shownReasonOf({ reason: null, ejection }), shownReasonOf({ reason: 'gone', ejection: null })],
    [ejection.reason, 'gone'],
  );
});

test.run();

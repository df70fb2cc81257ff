import * as assert from 'uvu/assert';
import { fields, instancesOf, issueText, shownReasonOf, shownStateOf } from '../../src/cli/answers.ts';
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

const issues = suite('finding text');

issues('names the option that was typed, not the field that it became', () => {
  const cases: readonly (readonly [readonly (string | number)[], string])[] = [
    [['body', 'instance', 'command'], '--command: no good'],
    [['body', 'instance', 'env_vars', 'A-B'], '--env A-B: no good'],
    [['body', 'instance', 'headers', 'Host'], '--header Host: no good'],
    [['body', 'template_name'], '<template>: no good'],
    [['body', 'password'], '--password: no good'],
    [['body', 'expires_at'], '--expires: no good'],
    [['query', 'wait'], '--wait: no good'],
    [['body', 'templates', 1], '--templates 1: no good'],
  ];
  for (const [loc, line] of cases) assert.is(issueText({ loc, msg: 'no good', type: 'x' }), line);
});

issues('leaves what no option makes as it is', () => {
  const paths = [
    ['body'],
    ['body', 'instance'],
    ['body', 'load_balancer', 'timeout'],
    ['body', 'constructor'],
  ];
  for (const loc of paths) assert.is(issueText({ loc, msg: 'odd', type: 'x' }), `${loc.join('.')}: odd`);
  assert.is(issueText({ msg: 'odd' }), 'request: odd');
});

issues('tells rules of names in words', () => {
  const pattern = { msg: 'must match ^[a-z]', type: 'string_pattern_mismatch' };
  assert.match(issueText({ ...pattern, loc: ['body', 'template_name'] }), /^a template name is lower-case/);
  assert.match(issueText({ ...pattern, loc: ['body', 'instance', 'id'] }), /^an instance id is letters/);
  assert.is(issueText({ ...pattern, loc: ['body', 'email'] }), '--email: must match ^[a-z]');
});

issues.run();

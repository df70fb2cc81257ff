// How answers of a gateway are shown to people: states, reasons, and the issues of invalid input.

import * as assert from 'uvu/assert';
import { instancesOf, issueText, shownReasonOf, shownStateOf } from '../../src/cli/answers.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('answers of a gateway');

test('contain no instances when they have an unexpected form', () => {
  for (const value of [undefined, { templates: 'x' }, { templates: { none: {}, odd: 7 } }])
    assert.equal(instancesOf(value), []);
});

test('show a healthy instance that is ejected as ejected, with the reason', () => {
  const ejection = { reason: '5 calls in a row failed', until: '2026-01-01T00:00:05.000Z' };
  const states = [{ state: 'healthy' }, { state: 'healthy', ejection }, { state: 'unhealthy', ejection }];
  assert.equal(states.map(shownStateOf), ['healthy', 'ejected', 'unhealthy']);
  const reasons = [{ reason: null, ejection }, { reason: 'It broke.', ejection: null }, {}];
  assert.equal(reasons.map(shownReasonOf), [ejection.reason, 'It broke', '']);
});

test('name the option of an invalid field, not the field', () => {
  const cases: readonly (readonly [readonly (string | number)[], string])[] = [
    [['body', 'instance', 'command'], '--command: no good'],
    [['body', 'instance', 'env_vars', 'A-B'], '--env A-B: no good'],
    [['body', 'instance', 'headers', 'Host'], '--header Host: no good'],
    [['body', 'template_name'], '<template>: no good'],
    [['query', 'outcome'], '--outcome: no good'],
    [['body', 'templates', 1], '--templates 1: no good'],
  ];
  for (const [loc, line] of cases) assert.is(issueText({ loc, msg: 'no good', type: 'x' }), line);
});

test('name an invalid field that has no option by its path', () => {
  const paths = [['body'], ['body', 'load_balancer', 'timeout'], ['body', 'constructor']];
  for (const loc of paths) assert.is(issueText({ loc, msg: 'odd', type: 'x' }), `${loc.join('.')}: odd`);
  assert.is(issueText({ msg: 'odd' }), 'request: odd');
});

test('explain the rules of names instead of showing the pattern', () => {
  const pattern = { msg: 'must match ^[a-z]', type: 'string_pattern_mismatch' };
  assert.match(issueText({ ...pattern, loc: ['body', 'template_name'] }), /^a template name is lower-case/);
  assert.match(issueText({ ...pattern, loc: ['body', 'instance', 'id'] }), /^an instance id is letters/);
  assert.is(issueText({ ...pattern, loc: ['body', 'email'] }), '--email: must match ^[a-z]');
});

test.run();

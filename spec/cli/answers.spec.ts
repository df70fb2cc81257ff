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

test('name an invalid field by its path', () => {
  const loc = ['body', 'instance', 'headers', 'Host'];
  assert.is(issueText({ loc, msg: 'no good', type: 'x' }), 'body.instance.headers.Host: no good');
});

test.run();

// How the states of instances and their reasons are shown to people.

import * as assert from 'uvu/assert';
import { shownReasonOf, shownStateOf } from '../../src/cli/answers.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('answers of a gateway');

test('show a healthy instance that is ejected as ejected, with the reason', () => {
  const ejection = { reason: '5 calls in a row failed', until: '2026-01-01T00:00:05.000Z' };
  const states = [{ state: 'healthy' }, { state: 'healthy', ejection }, { state: 'unhealthy', ejection }];
  assert.equal(states.map(shownStateOf), ['healthy', 'ejected', 'unhealthy']);
  const reasons = [{ reason: null, ejection }, { reason: 'It broke.', ejection: null }, {}];
  assert.equal(reasons.map(shownReasonOf), [ejection.reason, 'It broke', '']);
});

test.run();

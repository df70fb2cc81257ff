import { createHash } from 'node:crypto';
import * as assert from 'uvu/assert';
import { sessionFingerprint } from '../../src/actors/session-fingerprint.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the fingerprint of a session');

test('is what anybody who has the id can reckon, and holds nothing of it', () => {
  const id = 'hT2Wk0mYbqN7Zf4cR9sLxJ1vD6gPoE8uA3iKQyV5wBM';
  const whole = createHash('sha256').update(id).digest('hex');
  assert.is(sessionFingerprint(id), whole.slice(0, 12));
  assert.not.ok(id.includes(sessionFingerprint(id)));
});

test.run();

// How logs and events name a session.

import { createHash } from 'node:crypto';
import * as assert from 'uvu/assert';
import { sessionFingerprint } from '../../../src/domain/sessions/session-fingerprint.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('session fingerprint');

test('the fingerprint of a session is a hash of its id', () => {
  const id = 'hT2Wk0mYbqN7Zf4cR9sLxJ1vD6gPoE8uA3iKQyV5wBM';
  const whole = createHash('sha256').update(id).digest('hex');
  assert.is(sessionFingerprint(id), whole.slice(0, 12));
  assert.not.ok(id.includes(sessionFingerprint(id)));
});

test.run();

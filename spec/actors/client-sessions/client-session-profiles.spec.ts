// Profiles that are equal are one.

import * as assert from 'uvu/assert';
import { ClientProfiles } from '../../../src/actors/client-sessions/client-sessions.ts';
import { suite } from '../../helpers/suite.ts';
import { ASKABLE, PLAIN } from './client-session-harness.ts';

const test = suite('client session: profiles');

test('gives equal profiles the same object, whatever the order of their fields', () => {
  const profiles = new ClientProfiles();
  const one = profiles.take({ ...PLAIN, clientInfo: { name: 'x', version: '1' } });
  const other = profiles.take({ ...PLAIN, clientInfo: { version: '1', name: 'x' } });
  assert.is(one, other);
  assert.equal(one, { ...PLAIN, clientInfo: { name: 'x', version: '1' } });
  assert.is.not(profiles.take(ASKABLE), one);
});

test('forgets a profile when nobody uses it any more', () => {
  const profiles = new ClientProfiles();
  const shared = [profiles.take(PLAIN), profiles.take({ ...PLAIN })];
  assert.is(profiles.size, 1);
  for (const profile of shared) profiles.release(profile);
  assert.is(profiles.size, 0);
  profiles.release(PLAIN);
  assert.is(profiles.size, 0);
});

test.run();

// Which revision a session has, and what it allows.

import * as assert from 'uvu/assert';
import {
  canPoll,
  hasBatches,
  isLegacyVersion,
  versionOf,
  versionToOpen,
} from '../../../src/protocol/legacy/legacy-request.ts';
import { suite } from '../../helpers/suite.ts';
import { PEER } from '../scripted-backends.ts';

const test = suite('legacy versions');
const profile = (protocolVersion: string) => ({ protocolVersion, capabilities: {}, clientInfo: {} });

test('the one that was asked for is opened when it is known, else the newest', () => {
  for (const version of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07']) {
    assert.is(versionToOpen(version), version);
  }
  for (const version of ['2026-07-28', '1.0', '', 'latest']) assert.is(versionToOpen(version), '2025-11-25');
  assert.is(isLegacyVersion('2026-07-28'), false);
});

test('a backend of its own that is older has the say; a newer, shared, modern or bare one has not', () => {
  const asked = profile('2025-06-18');
  const old = { ...PEER, protocolVersion: '2024-11-05' };
  assert.is(versionOf({ profile: asked, peer: old, isShared: false }), '2024-11-05');
  assert.is(versionOf({ profile: asked, peer: old, isShared: true }), '2025-06-18');
  assert.is(versionOf({ profile: asked, peer: PEER, isShared: false }), '2025-06-18');
  const modern = { ...PEER, era: 'modern', protocolVersion: '2026-07-28' } as const;
  assert.is(versionOf({ profile: asked, peer: modern, isShared: false }), '2025-06-18');
  const bare = { ...PEER, era: 'bare', protocolVersion: '' } as const;
  assert.is(versionOf({ profile: asked, peer: bare, isShared: false }), '2025-06-18');
  const odd = { ...PEER, protocolVersion: 'tomorrow' };
  assert.is(versionOf({ profile: asked, peer: odd, isShared: false }), '2025-06-18');
});

test('what each allows', () => {
  const versions = ['2024-10-07', '2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
  assert.equal(versions.filter(hasBatches), ['2025-03-26']);
  assert.equal(versions.filter(canPoll), ['2025-11-25']);
});

test.run();

// The handshake of legacy clients: result and revision. Refusals are in legacy-refusals.spec.ts.

import * as assert from 'uvu/assert';
import type { Handshake } from '../../../src/domain/mcp/mcp.ts';
import { profileOf } from '../../../src/protocol/legacy/legacy-request.ts';
import { suite } from '../../helpers/suite.ts';
import { simulateTime } from '../../helpers/time/simulated-time.ts';
import { HANDSHAKE } from '../scripted-backends.ts';
import { legacyHarness, request } from './legacy-harness.ts';

const test = suite('legacy initialize');
simulateTime(test);

/** The answer to a client that asks for this revision, from a backend with this handshake. */
async function resultWith(handshake: Handshake, isShared = true, protocolVersion = '2025-06-18') {
  const { post, backends } = legacyHarness();
  backends.handshake = handshake;
  backends.openedAs = { isShared };
  const hello = { protocolVersion, capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  const { reply, done } = post(request(0, 'initialize', hello), { 'mcp-session-id': undefined });
  assert.is(await done, undefined);
  return Object(reply.message.result);
}

test('a legacy greeting is passed on with the revision of the session', async () => {
  const greeting = { ...HANDSHAKE.greeting, _meta: { x: 1 } };
  assert.equal(await resultWith({ ...HANDSHAKE, greeting }), { ...greeting, protocolVersion: '2025-06-18' });
  const own = await resultWith({ ...HANDSHAKE, protocolVersion: '2024-11-05' }, false);
  assert.is(own.protocolVersion, '2024-11-05');
});

test('a modern handshake result is reduced to the fields of `initialize`', async () => {
  const greeting = {
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: { listChanged: true } },
    instructions: 'be kind',
    ttlMs: 1,
    _meta: {},
  };
  const serverInfo = { name: 'm', version: '2' };
  assert.equal(
    await resultWith({ ...HANDSHAKE, era: 'modern', protocolVersion: '2026-07-28', serverInfo, greeting }),
    {
      protocolVersion: '2025-06-18',
      capabilities: { tools: { listChanged: true } },
      serverInfo,
      instructions: 'be kind',
    },
  );
});

test('a bare backend is announced with tools', async () => {
  assert.equal(await resultWith({ ...HANDSHAKE, era: 'bare', protocolVersion: '', greeting: {} }), {
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'scripted', version: '1' },
  });
});

test('a session has the requested revision if it is known, else the newest', () => {
  const openedWith = (protocolVersion: string) =>
    profileOf({ protocolVersion, capabilities: {}, clientInfo: { name: 'c', version: '1' } }).protocolVersion;
  for (const version of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07']) {
    assert.is(openedWith(version), version);
  }
  for (const version of ['2026-07-28', '1.0', '', 'latest']) assert.is(openedWith(version), '2025-11-25');
});

test.run();

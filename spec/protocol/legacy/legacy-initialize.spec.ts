// The handshake of legacy clients: result and revision. Refusals are in legacy-refusals.spec.ts.

import * as assert from 'uvu/assert';
import type { Handshake } from '../../../src/domain/mcp/mcp.ts';
import { initializeResult } from '../../../src/protocol/legacy/legacy-endpoint.ts';
import { profileOf } from '../../../src/protocol/legacy/legacy-request.ts';
import { suite } from '../../helpers/suite.ts';
import { HANDSHAKE, SessionBackends } from '../scripted-backends.ts';

const test = suite('legacy initialize');

function resultWith(handshake: Handshake, isShared = true, protocolVersion = '2025-06-18') {
  const backends = new SessionBackends();
  backends.handshake = handshake;
  const session = backends.add('one', 'ann', { protocolVersion });
  session.isShared = isShared;
  return initializeResult(session);
}

test('a legacy greeting is passed on with the revision of the session', () => {
  const greeting = { ...HANDSHAKE.greeting, _meta: { x: 1 } };
  assert.equal(resultWith({ ...HANDSHAKE, greeting }), { ...greeting, protocolVersion: '2025-06-18' });
  assert.is(resultWith({ ...HANDSHAKE, protocolVersion: '2024-11-05' }, false).protocolVersion, '2024-11-05');
});

test('a modern handshake result is reduced to the fields of `initialize`', () => {
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
    resultWith({ ...HANDSHAKE, era: 'modern', protocolVersion: '2026-07-28', serverInfo, greeting }),
    {
      protocolVersion: '2025-06-18',
      capabilities: { tools: { listChanged: true } },
      serverInfo,
      instructions: 'be kind',
    },
  );
});

test('a bare backend is announced with tools', () => {
  assert.equal(resultWith({ ...HANDSHAKE, era: 'bare', protocolVersion: '', greeting: {} }), {
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

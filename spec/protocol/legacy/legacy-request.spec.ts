// Headers of legacy clients. Every refusal, with status and code, is in legacy-refusals.spec.ts.

import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/account.ts';
import type { McpRequest } from '../../../src/protocol/endpoint-types.ts';
import { hasSession, revisionOf, sessionOf } from '../../../src/protocol/legacy/legacy-request.ts';
import { suite } from '../../helpers/suite.ts';
import { ScriptedBackends } from '../scripted-backends.ts';

const test = suite('legacy request');

function requestWith(headers: McpRequest['headers']): McpRequest {
  return {
    method: 'POST',
    headers,
    body: new Uint8Array(),
    template: undefined,
    principal: ANONYMOUS,
    consumeRateLimit: () => {},
  };
}

test('a session is found by its id and owner', () => {
  const backends = new ScriptedBackends();
  const mine = backends.add('mine', 'anonymous');
  backends.add('theirs', 'bob');
  assert.is(sessionOf(requestWith({ 'mcp-session-id': 'mine' }), backends), mine);
  const known = ['mine', 'theirs', 'none'].map((id) =>
    hasSession(requestWith({ 'mcp-session-id': id }), backends),
  );
  assert.equal([...known, hasSession(requestWith({}), backends)], [true, false, false, false]);
});

test('a request is in the revision that it says, or in that of its session', () => {
  const session = new ScriptedBackends().add('mine', 'anonymous', { protocolVersion: '2025-11-25' });
  assert.is(revisionOf(requestWith({}), session), '2025-11-25');
  assert.is(revisionOf(requestWith({ 'mcp-protocol-version': '2025-03-26' }), session), '2025-03-26');
});

test.run();

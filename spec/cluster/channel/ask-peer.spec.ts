// Questions to another node over a real channel: whole answers, their bound, and what is left of a question after its answer.

import { getEventListeners, once } from 'node:events';
import * as assert from 'uvu/assert';
import { peerAnswer } from '../../../src/cluster/channel/ask-peer.ts';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { newSessionId } from '../../../src/domain/nodes/life.ts';
import { messageOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { Deployment, type NodeOptions } from './peer-nodes.ts';

const test = suite('questions to a peer');
const [A, B] = ['AAAAAAAA', 'BBBBBBBB'] as const;
const MAX_BYTES = 1024 * 1024;
let deployment: Deployment;
test.before.each(() => {
  deployment = new Deployment();
});
test.after.each(() => deployment.close());

test('a question listens to its signal until the answer, not longer', async () => {
  for (const size of [5, MAX_BYTES + 1]) {
    deployment = new Deployment();
    const { signal } = new AbortController();
    const { answer } = await asked((_request, response) => response.end('x'.repeat(size)), signal);
    assert.is(getEventListeners(signal, 'abort').length, 1);
    if (size > MAX_BYTES) assert.match(await messageOf(answer, GatewayError), 'too long');
    else assert.equal(await answer.then(({ status, body }) => [status, body.length]), [200, size]);
    assert.equal([size, getEventListeners(signal, 'abort').length], [size, 0]);
    await deployment.close();
  }
});

test('an answer over the bound is refused at the bound, and its node stops sending', async () => {
  const closed = Promise.withResolvers<void>();
  let sent = 0;
  const { answer } = await asked(async (_request, response) => {
    response.once('close', () => closed.resolve());
    const part = Buffer.alloc(64 * 1024);
    while (!response.destroyed && sent < 64 * MAX_BYTES) {
      sent += part.length;
      if (!response.write(part)) await Promise.race([once(response, 'drain'), closed.promise]);
    }
    // It never ends.
  }, new AbortController().signal);
  assert.match(await messageOf(answer, GatewayError), 'too long');
  await closed.promise;
  assert.ok(sent < 32 * MAX_BYTES, `${sent} bytes were sent`);
});

test.run();

/** The question of one node to another one, whose answer is under way. */
async function asked(serve: NonNullable<NodeOptions['serve']>, signal: AbortSignal) {
  const from = await deployment.node(A);
  await deployment.node(B, { serve });
  const peer = await from.peers.ofSession(newSessionId(B));
  assert.ok(peer);
  const caller = { principal: ANONYMOUS, requestId: 'request-1', address: undefined };
  const request = { caller, method: 'GET', target: '/gateway/stats', headers: {}, body: Buffer.alloc(0) };
  const asking = { ...request, isStream: false, isRepeatable: () => true };
  const answer = peerAnswer(peer, asking, { maxBytes: MAX_BYTES, signal });
  answer.catch(() => undefined);
  return { answer };
}

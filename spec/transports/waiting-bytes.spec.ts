// The memory of messages that wait to be sent to a backend that does not read them: counted for their caller, bounded, and given back.
// Source: ADR 90.

import * as assert from 'uvu/assert';
import { hasCode } from '../../src/domain/errors/errors.ts';
import { UserShares } from '../../src/domain/memory/user-shares.ts';
import type { Conversation } from '../../src/transports/transport.ts';
import { see } from '../conformance/transport.ts';
import { until } from '../helpers/eventually.ts';
import { suite } from '../helpers/suite.ts';
import { passTurns } from '../helpers/time/turns.ts';
import { withRawTransport } from './http/open-http.ts';
import { answerJson, messageOf } from './raw-server.ts';
import { openStdio, scripted } from './stdio/open-stdio.ts';

const test = suite('waiting messages', { timeoutMs: 30_000 });

const KB = 1024;
const PROFILE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } };
const TEXT = { text: 'x'.repeat(10 * KB) };

/** Shakes hands; it answers a request, and reads nothing more from then on. Without the timer it would end: it waits for nothing. */
const DEAF = scripted(
  "process.stdin.pause(); setInterval(() => {}, 60_000); say({ jsonrpc: '2.0', id, result: {} })",
);

/** How many of these notifications were taken before one was refused; at most 1,000. */
function notifyUntilRefused(conversation: Conversation, ownerId?: string): number {
  for (let taken = 0; taken < 1_000; taken += 1) {
    try {
      conversation.notify('notifications/custom', TEXT, ownerId);
    } catch (thrown) {
      assert.ok(hasCode(thrown, 'QUEUE_FULL'), String(thrown));
      return taken;
    }
  }
  return 1_000;
}

test('notifications for a program that does not read are bounded for each caller, and in total', async () => {
  const waitingBytes = new UserShares(1_500 * KB, 1_000 * KB);
  const transport = await openStdio(DEAF, { waitingBytes });
  const opened = ['ann', 'ann', 'ben'].map((owner) =>
    transport.openConversation({ profile: PROFILE, signal: new AbortController().signal, ownerId: owner }),
  );
  const [first, second, bens] = await Promise.all(opened);
  assert.ok(first && second && bens);
  assert.is(notifyUntilRefused(first), 96);
  assert.is(notifyUntilRefused(second), 0);
  assert.is(notifyUntilRefused(transport, 'ann'), 0);
  assert.is(notifyUntilRefused(bens), 49);
  await Promise.all([first.close(), second.close(), bens.close()]);
  assert.equal([waitingBytes.total, waitingBytes.size], [0, 0]);
  await transport.close();
});

test('what a program has not read of a cancelled call is counted until it ends; before, its body is counted elsewhere', async () => {
  const waitingBytes = new UserShares(10_000 * KB, 10_000 * KB);
  const transport = await openStdio(DEAF, { waitingBytes });
  const text = 'x'.repeat(1_000 * KB);
  await see(transport.exchange({ method: 'first', callerId: 'ann' }));
  const large = transport.exchange({ method: 'large', params: { text }, callerId: 'ann' }).subscribe();
  await passTurns(10);
  assert.is(waitingBytes.total, 0);
  large.unsubscribe();
  await until(() => waitingBytes.held('ann') > text.length, 'it is counted');
  await transport.close();
  assert.is(waitingBytes.total, 0);
});

test('a program that asks without end and reads nothing has few answers that wait', async () => {
  const waitingBytes = new UserShares(10_000 * KB, 10_000 * KB);
  const ping = "say({ jsonrpc: '2.0', id: String(count).padEnd(256), method: 'ping' })";
  const endless = scripted(
    `process.stdin.pause(); setInterval(() => {}, 60_000); for (let count = 0; count < 5_000; count += 1) ${ping};
    say({ jsonrpc: '2.0', id, result: {} })`,
  );
  const transport = await openStdio(endless, { waitingBytes });
  await see(transport.exchange({ method: 'first', callerId: 'ann' }));
  assert.ok(waitingBytes.total < 1_000 * KB, `${waitingBytes.total} bytes wait`);
  await transport.close();
  assert.is(waitingBytes.total, 0);
});

test('notifications and replies for an HTTP server that does not answer are counted until they end', async () => {
  const waitingBytes = new UserShares(400 * KB, 100 * KB);
  let notified = 0;
  await withRawTransport(
    async (request, response) => {
      if (request.method !== 'POST') return void response.writeHead(405).end();
      const { id, method } = await messageOf(request);
      if (method === 'notifications/custom') notified += 1;
      else if (method === 'initialize')
        answerJson(response, 200, {
          jsonrpc: '2.0',
          id,
          result: { ...PROFILE, serverInfo: PROFILE.clientInfo },
        });
      else if (id === undefined) response.writeHead(202).end();
      else response.writeHead(404).end();
    },
    async (transport) => {
      const conversation = await transport.openConversation({
        profile: PROFILE,
        signal: new AbortController().signal,
        ownerId: 'ann',
      });
      assert.ok(conversation);
      assert.is(notifyUntilRefused(conversation), 7);
      assert.is(notifyUntilRefused(transport, 'ann'), 0);
      assert.is(notifyUntilRefused(transport, 'ben'), 7);
      await until(() => notified === 14, 'all have arrived');
      await until(() => waitingBytes.total === 0, 'they are given up');
    },
    { waitingBytes },
  );
});

test.run();

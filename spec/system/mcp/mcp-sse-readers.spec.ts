// Clients of HTTP+SSE that do not read: their connection is closed after the limit, with its session and its calls, and its bytes
// are released. Other clients are not affected.

import * as assert from 'uvu/assert';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { untilClosed } from '../../helpers/clients/raw-http.ts';
import { call, inFlight, initialized, message, sessions } from '../../helpers/clients/sse-client.ts';
import { until } from '../../helpers/eventually.ts';
import { collectGarbage } from '../../helpers/garbage.ts';
import { type AccountsFixture, startWithAccounts } from '../../helpers/http/accounts.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: slow clients of HTTP+SSE');
const MB = 1024 * 1024;
/** Far more than the system buffers for a socket. */
const LARGE = 16 * MB;
const TOOLS = ['name', 'large', 'endless'].map((name) => ({ name, inputSchema: { type: 'object' } }));
const LARGE_TEXT = 'x'.repeat(LARGE);

/** Functions that answer the waiting calls of `large`. */
let held: (() => void)[] = [];
let cancelled = 0;
const handler: InProcessHandler = ({ method, params }, { signal }) => {
  if (method === 'tools/list') return { tools: TOOLS };
  if (method !== 'tools/call') return {};
  const result = (text: string) => ({ content: [{ type: 'text', text }] });
  if (params?.name === 'name') return result('one');
  signal.addEventListener('abort', () => {
    cancelled += 1;
  });
  return new Promise((resolve) => {
    if (params?.name === 'large') held.push(() => resolve(result(LARGE_TEXT)));
  });
};

let app: AccountsFixture;
test.before.each(async () => {
  held = [];
  cancelled = 0;
  app = await startWithAccounts({
    unreadMs: 800,
    unreadBounds: { totalBytes: 128 * MB, ownerBytes: 20 * MB },
  });
  await app.serve('demo', 'one', handler);
});
test.after.each(() => app.close());

/** Answers `calls` calls of `large`. */
async function answerLarge(calls: number): Promise<void> {
  await until(() => held.length === calls, 'the calls are at the instance');
  for (const answer of held.splice(0)) answer();
}

test('that do not read are disconnected, and lose their session, their calls and their unread bytes', async () => {
  const [slow, other] = [await initialized(app), await initialized(app, '/mcp/demo/sse', app.admin)];
  await slow.post(call(1, 'endless'));
  await slow.post(call(2, 'large'));
  slow.socket.pause();
  const before = bufferBytes();
  await answerLarge(1);
  await until(async () => (await slow.post(call(3, 'name'))).status === 429, 'too much of it waits');
  assert.ok(bufferBytes() - before > LARGE / 2, 'it waits in memory');
  await other.post(call(1, 'name'));
  assert.ok((await other.answer(1)).result);
  await until(() => sessions(app) === 1, 'its session has ended');
  assert.equal([inFlight(app), cancelled], [0, 1]);
  assert.is((await slow.post(message(4, 'ping'))).status, 404);
  await until(() => bufferBytes() - before < LARGE / 4, 'the memory is given back');
  const again = await initialized(app);
  assert.is((await again.post(call(1, 'name'))).status, 202);
  assert.ok((await again.answer(1)).result);
  await other.post(call(2, 'name'));
  assert.ok((await other.answer(2)).result);
  slow.socket.resume();
  await untilClosed(slow.socket);
  for (const { socket } of [again, other]) socket.destroy();
});

test('that keep reading are not disconnected', async () => {
  const stream = await initialized(app);
  await stream.post(call(1, 'large'));
  // It reads a part now and then, for longer than the write timeout. The system tells the writer only after a third of its
  // buffer of 4 MB was read, which must not take as long as the timeout, so the pauses are short.
  const startMs = performance.now();
  stream.socket.on('data', () => {
    if (performance.now() - startMs > 1_300) return;
    stream.socket.pause();
    setTimeout(() => stream.socket.resume(), 10);
  });
  await answerLarge(1);
  assert.ok((await stream.answer(1)).result);
  stream.socket.destroy();
});

test.run();

/** Referenced memory outside of the heap. */
function bufferBytes(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

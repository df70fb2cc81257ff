// Calls over HTTP to a process leave no garbage that only a full collection frees. Minor collections cost little as long as
// no object of a call becomes old. Source: ADR 79. @own-process: it measures the heap.

import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import * as assert from 'uvu/assert';
import { stdioServerPath } from '../fixtures/programs.ts';
import { openSession, rpc } from '../helpers/clients/mcp-messages.ts';
import { jsonRequest, openRaw } from '../helpers/clients/raw-http.ts';
import { bytesLeftPerCall } from '../helpers/garbage.ts';
import { type AppFixture, startApp } from '../helpers/http/app.ts';
import { suite } from '../helpers/suite.ts';

const CONNECTIONS = 16;
const CALLS = 4_000;

setFlagsFromString('--no-allocation-site-pretenuring'); // as `gateway start`

const test = suite('garbage collection', { timeoutMs: 120_000 });
let app: AppFixture;
test.before.each(async () => {
  app = await startApp();
  const command = { command: process.execPath, args: [stdioServerPath], id: 'a' };
  await app.gateway.register('pipe', command, { waitMs: 20_000 });
});
test.after.each(async () => {
  await app.gateway.close({ graceMs: 0 });
  await app.close();
});

const params = { name: 'echo', arguments: { text: 'x' } };

test('REST calls leave nothing to full collections', async () => {
  await assertLeavesNothing('/mcp/pipe/tools/call', () => params);
});

test('calls of a session leave nothing to full collections', async () => {
  const { 'mcp-session-id': id = '' } = await openSession(app, '/mcp/pipe');
  await assertLeavesNothing('/mcp/pipe', (call) => rpc('tools/call', params, call), { 'Mcp-Session-Id': id });
});

test.run();

const ACCEPT = { Accept: 'application/json, text/event-stream' };

async function assertLeavesNothing(
  path: string,
  bodyOf: (connection: number) => object,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const requests = Array.from({ length: CONNECTIONS }, (_, connection) => {
    const body = JSON.stringify(bodyOf(connection + 1));
    return jsonRequest(`POST ${path}`, body, { ...ACCEPT, ...headers });
  });
  const [left, rounds] = await bytesLeftPerCall((count) => call(requests, count), CALLS);
  // The kept events take 600: they are old when newer events replace them. One Map of calls takes another 900.
  assert.ok(left < 1_100, rounds);
}

/** Makes `count` calls over the connections, one at a time on each. */
async function call(requests: readonly string[], count: number): Promise<void> {
  const share = Math.ceil(count / requests.length);
  await Promise.all(requests.map((request) => callAgain(request, share)));
}

async function callAgain(request: string, count: number): Promise<void> {
  const socket = await openRaw(app.port);
  let left = count;
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    const headEnd = received.indexOf('\r\n\r\n');
    const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? Number.NaN);
    if (!(received.length >= headEnd + 4 + length)) return;
    assert.match(received, /^HTTP\/1\.1 200/);
    received = '';
    left -= 1;
    if (left > 0) socket.write(request);
    else socket.end();
  });
  socket.write(request);
  await once(socket, 'close');
}

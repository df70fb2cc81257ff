// All calls over HTTP get the headers that their tool requires. When a backend misses one, its tools are listed again, and the
// call is repeated where that can help and cannot harm.

import { lastValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { type Answer, refused } from '../scripted-server.ts';
import {
  CALL,
  callWith,
  heardBy,
  MISSED,
  outcomeOf,
  REGION,
  tool,
  withBackend,
} from './tool-headers-harness.ts';

const test = suite('http tool headers');

test('headers that the caller set are unchanged', async () => {
  await withBackend(async (transport, backend) => {
    await outcomeOf(transport, { method: 'tools/list' });
    backend.refuses = () => true;
    const code = await outcomeOf(transport, { ...CALL, headers: { 'mcp-param-region': '=?base64?eA==?=' } });
    assert.equal([code, backend.regions, backend.lists], [-32020, ['=?base64?eA==?='], 1]);
  });
});

test('headers that would be too large are answered with -32602, and the call is not sent', async () => {
  await withBackend(async (transport, backend) => {
    backend.refuses = (headers) => headers['mcp-param-region'] === undefined;
    const large = callWith({ region: 'x'.repeat(20_000) });
    assert.is(await outcomeOf(transport, large), -32602);
    assert.equal([backend.regions, backend.lists], [[undefined], 1]);
    assert.is(await outcomeOf(transport, large), -32602);
    assert.equal([backend.regions, backend.lists], [[undefined], 1]);
    assert.equal(await outcomeOf(transport, callWith({ region: 'x'.repeat(7_000) })), { content: [] });
    const own = { 'mcp-param-region': 'x'.repeat(20_000) };
    assert.is(await outcomeOf(transport, { ...CALL, headers: own }), -32602);
  });
});

// Missing headers.

test('missing headers are learned from all pages of the tool list, and the call is repeated', async () => {
  await withBackend(async (transport, backend) => {
    backend.pages = [[tool('zero', {})], [tool('one', { region: REGION })]];
    backend.refuses = (headers) => headers['mcp-param-region'] !== 'x';
    assert.equal(await outcomeOf(transport), { content: [] });
    assert.equal([backend.regions, backend.lists], [[undefined, 'x'], 2]);
    await outcomeOf(transport);
    assert.equal([backend.regions, backend.lists], [[undefined, 'x', 'x'], 2]);
  });
});

test('a call is not repeated if it would have the same headers', async () => {
  await withBackend(async (transport, backend) => {
    await outcomeOf(transport, { method: 'tools/list' });
    backend.refuses = () => true;
    assert.is(await outcomeOf(transport), -32020);
    assert.equal([backend.regions, backend.lists], [['x'], 2]);
  });
});

test('a call that waits for missing headers ends when its caller leaves, or the transport closes', async () => {
  await withBackend(async (transport, backend) => {
    backend.onList = () => undefined;
    backend.refuses = () => true;
    const subscription = transport.exchange(CALL).subscribe();
    const other = lastValueFrom(transport.exchange(CALL)).catch((thrown: unknown) => thrown);
    await until(() => backend.calls.length === 2 && backend.lists > 0, 'both miss a header');
    subscription.unsubscribe();
    await transport.close();
    const failure = await other;
    assert.instance(failure, GatewayError);
    assert.is(backend.calls.length, 2);
  });
});

/** Writes an event stream. */
function eventStream(status: number, ...messages: object[]): Answer {
  return (response, { id }) => {
    response.writeHead(status, { 'content-type': 'text/event-stream' });
    for (const message of messages) {
      const own = 'method' in message ? {} : { id };
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...own, ...message })}\n\n`);
    }
    response.end();
  };
}

const ANSWERED_400 = 'BACKEND_UNAVAILABLE: The server answered 400: a header is missing.';
const LOG_LINE = { method: 'notifications/message', params: { level: 'info', data: 'work is done' } };
const ERROR = { code: MISSED, message: 'a header is missing' };

/** Refusals by a server that may have acted, or not by the server: the error is the answer, at once. */
const unsure: readonly [how: string, onCall: Answer, received: readonly unknown[]][] = [
  ['with status 200', refused(200, MISSED), [-32020]],
  ['on an event stream', eventStream(200, { error: ERROR }), [-32020]],
  ['on an event stream that is a refusal', eventStream(400, { error: ERROR }), [ANSWERED_400]],
  ['after a message', eventStream(200, LOG_LINE, { error: ERROR }), ['notifications/message', -32020]],
  ['before a late result', eventStream(200, { error: ERROR }, { result: { stale: true } }), [-32020]],
];

for (const [how, onCall, received] of unsure) {
  test(`a call without required headers is not repeated when the refusal comes ${how}`, async () => {
    await withBackend(async (transport, backend) => {
      backend.onCall = onCall;
      assert.equal(await heardBy(transport), received);
      assert.equal([backend.calls.length, backend.lists], [1, 0]);
      backend.onCall = undefined;
      assert.equal(await heardBy(transport), [{ content: [] }]);
    });
  });
}

test.run();

// Whose conversations are kept by which backend: a backend of both eras keeps one for each legacy client beside the modern
// one of the transport; one that refuses is not asked again.

import type { IncomingMessage, ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors.ts';
import { http } from '../../../src/transports/http/http.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { callTool, see, textOf } from '../../conformance/transport.ts';
import { answering, clientSide, everyCapability, noCapability, openFor } from '../../conformance/upstream.ts';
import { suite } from '../../helpers/suite.ts';
import { answerJson, messageOf, withRawServer } from '../raw-server.ts';
import { httpDefinition, openOptions, withBackend } from './open-http.ts';

const test = suite('http, whose conversations', { timeoutMs: 20_000 });

const opening = (transport: Transport) => transport.openUpstream(noCapability, new AbortController().signal);

async function withTransport(url: string, body: (transport: Transport) => Promise<void>): Promise<void> {
  const transport = await http.open(httpDefinition(url), openOptions());
  try {
    await body(transport);
  } finally {
    await transport.close();
  }
}

test('a backend of both eras keeps a session for each legacy client, in the legacy era', async () => {
  await withBackend({ era: 'dual', answers: 'sse' }, async ({ transport, server }) => {
    assert.is(transport.peer.era, 'modern');
    const [one, other] = [await openFor(transport), await openFor(transport, noCapability)];
    assert.equal(
      [one.peer.era, one.peer.protocolVersion, other.peer.protocolVersion],
      ['legacy', '2025-06-18', '2025-11-25'],
    );
    assert.is(server.sessions.size, 2);
    assert.equal((await clientSide(one)).declared, { ...everyCapability });
    assert.equal((await clientSide(other)).declared.capabilities, {});
    const { asked } = await answering(one, { method: 'sampling/createMessage', params: {} }, ({ answer }) =>
      answer({ result: {} }),
    );
    assert.is(asked.length, 1);
    assert.is(textOf((await see(transport.exchange(callTool('echo', { text: 'x' })))).events[0]), 'x');
    assert.is(server.requests.at(-1)?.headers['mcp-protocol-version'], '2026-07-28');
    await other.close();
    assert.is(server.sessions.size, 1);
  });
});

test('a backend that refuses is asked once, a bare one never', async () => {
  for (const [era, times] of [
    ['modern', 1],
    ['bare', 0],
  ] as const) {
    await withBackend({ era }, async ({ transport, server }) => {
      const initializes = () =>
        server.requests.filter(({ message }) => message?.method === 'initialize').length;
      const before = initializes();
      for (let index = 0; index < 3; index += 1) assert.is(await opening(transport), undefined);
      assert.is(initializes() - before, times);
    });
  }
});

// --- what counts as a refusal ----------------------------------------------------------------------------------------

const RESULT = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, resultType: 'complete' };

type Answer = (response: ServerResponse, id: unknown) => void;

const plain =
  (status: number, body = ''): Answer =>
  (response) =>
    void response.writeHead(status).end(body);
const withError =
  (status: number, code: number, of?: null): Answer =>
  (response, id) =>
    answerJson(response, status, {
      jsonrpc: '2.0',
      id: of === undefined ? id : of,
      error: { code, message: 'no' },
    });
const withResult =
  (result: object): Answer =>
  (response, id) =>
    answerJson(response, 200, { jsonrpc: '2.0', id, result }, { 'mcp-session-id': 'given' });

/** Opens three times with a modern server that answers `initialize` so; what came of it, and how often it was asked. */
async function openThrice(answer: Answer) {
  const outcomes: string[] = [];
  let times = 0;
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { id, method } = await messageOf(request);
    if (request.method === 'DELETE') return void response.writeHead(200).end();
    if (method !== 'initialize') return answerJson(response, 200, { jsonrpc: '2.0', id, result: RESULT });
    times += 1;
    answer(response, id);
  };
  await withRawServer(serve, ({ url }) =>
    withTransport(url, async (transport) => {
      for (let index = 0; index < 3; index += 1) {
        const outcome = await opening(transport).catch((thrown: unknown) => thrown);
        outcomes.push(
          outcome instanceof GatewayError ? `${outcome.code} ${outcome.delivered}` : typeof outcome,
        );
      }
    }),
  );
  return { outcomes, times };
}

for (const [name, answer] of Object.entries<Answer>({
  'an unsupported version': withError(400, -32022),
  'an unknown method': withError(404, -32601),
  'an unknown method, as a fault': withError(500, -32601),
  'an error in a success': withError(200, -32603),
  'an error that names no request': withError(200, -32600, null),
  'a page': plain(404, '<h1>Not found</h1>'),
  'a status': plain(405),
  nothing: plain(202),
  'a page in a success': plain(200, '<h1>Welcome</h1>'),
  'a modern revision': withResult({ protocolVersion: '2026-07-28', capabilities: {} }),
  'the result of something else': withResult(RESULT),
})) {
  test(`${name} instead of a handshake is a refusal, and remembered`, async () => {
    const outcomes = ['undefined', 'undefined', 'undefined'];
    assert.equal(await openThrice(answer), { outcomes, times: 1 });
  });
}

for (const [name, answer] of Object.entries<Answer>({
  'a fault': plain(500),
  'a fault with an error': withError(500, -32603),
  'a proxy in trouble': plain(503),
  'no authorization': plain(401),
  'too many requests': plain(429),
  'a broken connection': (response) => void response.socket?.resetAndDestroy(),
})) {
  test(`${name} instead of a handshake is a failure, and it is asked again`, async () => {
    const failure = 'BACKEND_UNAVAILABLE no';
    assert.equal(await openThrice(answer), { outcomes: [failure, failure, failure], times: 3 });
  });
}

test.run();

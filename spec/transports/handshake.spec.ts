// The era of each kind of backend, over a channel that is a table of answers; metadata and headers of requests in each era.

import * as assert from 'uvu/assert';
import type { ExchangeRequest } from '../../src/domain/calls/exchange.ts';
import { backendUnavailable } from '../../src/domain/errors/backend-errors.ts';
import { GatewayError } from '../../src/domain/errors/errors.ts';
import { type JsonObject, JsonText } from '../../src/domain/json/json.ts';
import type { Era } from '../../src/domain/mcp/mcp.ts';
import { gatewayAnswerTo, textWithToken } from '../../src/transports/caller-messages.ts';
import { eraHeaders, withEraMetadata } from '../../src/transports/era-metadata.ts';
import {
  type HandshakeAnswer,
  type HandshakeChannel,
  isRefusal,
  shakeHands,
} from '../../src/transports/handshake.ts';
import { noCapability } from '../conformance/conversation.ts';
import { errorOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('handshake');

const PROFILE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} };

const client = { name: 'stagedoor', version: '1.2.3' };
const unknown = fails(-32601);

interface Heard {
  readonly method: string;
  readonly era: Era;
}

type Answers = Readonly<Record<string, HandshakeAnswer | GatewayError | readonly HandshakeAnswer[]>>;

/** A backend that answers each method as the table says, several answers one after another, -32601 otherwise. */
function backend(answers: Answers) {
  const received: (Heard & { params: ExchangeRequest['params'] })[] = [];
  const notified: string[] = [];
  const counts = new Map<string, number>();
  const channel: HandshakeChannel = {
    request: async ({ method, params }, { era }) => {
      received.push({ method, era, params });
      const count = counts.get(method) ?? 0;
      counts.set(method, count + 1);
      const planned = answers[method] ?? unknown;
      if (planned instanceof GatewayError) throw planned;
      return ('kind' in planned ? planned : planned[count]) ?? unknown;
    },
    initialized: () => {
      notified.push('notifications/initialized');
    },
  };
  return { channel, received, notified, asked: () => received.map(({ method }) => method) };
}

function gives(value: unknown): HandshakeAnswer {
  return { kind: 'result', result: JsonText.ofValue(value) };
}

function fails(code: number, data?: { supported: string[] }): HandshakeAnswer {
  return { kind: 'error', error: { code, message: 'no', ...(data === undefined ? {} : { data }) } };
}

const serverInfo = { name: 'there', version: '9' };
const capabilities = { tools: { listChanged: true } };
const initialized = (protocolVersion: string) => gives({ protocolVersion, capabilities, serverInfo });
const discovered = gives({
  supportedVersions: ['2030-01-01', '2026-07-28'],
  capabilities,
  _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
});

const legacyHandshake = (protocolVersion: string) => ({
  era: 'legacy',
  protocolVersion,
  serverInfo,
  capabilities,
});
const modernHandshake = { ...legacyHandshake('2026-07-28'), era: 'modern' };
/** What the handshake learned, without the greeting. */
async function knownAfter(...reported: Parameters<typeof shakeHands>) {
  const { greeting: _, ...known } = await shakeHands(...reported);
  return known;
}

test('accepts every legacy revision, the one before the first release included', async () => {
  for (const version of ['2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07']) {
    const { channel } = backend({ initialize: initialized(version) });
    assert.equal(await knownAfter(channel, { client, first: 'legacy' }), legacyHandshake(version));
  }
});

test('fails when initialize is answered with an unknown revision', async () => {
  const { channel, notified } = backend({ initialize: initialized('1999-12-31') });
  const error = await errorOf(shakeHands(channel, { client, first: 'legacy' }));
  assert.is(error.code, 'BACKEND_UNAVAILABLE');
  assert.is(error.delivered, 'no');
  assert.equal(notified, []);
});

test('takes the name of a modern backend from the result, too', async () => {
  const result = { supportedVersions: ['2026-07-28'], capabilities, serverInfo };
  const { channel } = backend({ 'server/discover': gives(result) });
  assert.equal(await knownAfter(channel, { client, first: 'modern' }), modernHandshake);
});

test('falls back to initialize when discover is refused or answered without a supported revision', async () => {
  const answers = [fails(-32000), fails(-32601), fails(-32022, { supported: ['2030-01-01'] }), gives({})];
  for (const answer of [...answers, gives({ supportedVersions: ['2025-11-25'] })]) {
    const { channel } = backend({ 'server/discover': answer, initialize: initialized('2025-11-25') });
    assert.equal(await knownAfter(channel, { client, first: 'modern' }), legacyHandshake('2025-11-25'));
  }
});

test('sends discover again when the refusal lists a supported revision', async () => {
  const refused = fails(-32022, { supported: ['2026-07-28'] });
  const { channel, asked } = backend({ 'server/discover': [refused, discovered] });
  assert.equal(await knownAfter(channel, { client, first: 'modern' }), modernHandshake);
  assert.equal(asked(), ['server/discover', 'server/discover']);
});

test('offers the revisions that a refusal of initialize names, else the older ones if it is about the revision', async () => {
  const refuses = (accepted: string, message: string, data?: JsonObject): HandshakeChannel => ({
    request: async ({ method, params }) =>
      method === 'initialize' && params?.protocolVersion === accepted
        ? initialized(accepted)
        : { kind: 'error', error: { code: -32602, message, ...(data === undefined ? {} : { data }) } },
    initialized: () => {},
  });
  for (const [accepted, message, data] of [
    ['2025-06-18', 'X_INCOMPATIBLE', { expected: '2025-06-18' }],
    ['2024-11-05', 'no', { supported: '2025-03-26, 2024-11-05' }],
    ['2025-03-26', 'I only speak 2025-03-26, not 2025-11-25.'],
    ['2025-06-18', 'Unsupported protocol version'],
    ['2024-11-05', 'This version is not supported', { requested: '2025-11-25' }],
    ['2025-03-26', 'Bad version 2025-11-25'],
    ['2024-11-05', 'no', { got: '2025-11-25' }],
    ['2025-06-18', 'protocol too new'],
    ['2025-06-18', 'Invalid params'],
  ] as const) {
    const handshake = await knownAfter(refuses(accepted, message, data), { client, first: 'legacy' });
    assert.equal(handshake, legacyHandshake(accepted), message);
  }
  const profile = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: {} };
  const newer = refuses('2025-11-25', 'supported: 2025-11-25');
  assert.equal(await knownAfter(newer, { client, first: 'legacy', profile }), legacyHandshake('2025-11-25'));
});

test('offers no other revision after other refusals, and after those of the modern era', async () => {
  for (const [code, message] of [
    [-32022, 'Unsupported protocol version'],
    [-32602, 'Unsupported protocol version, use 2026-07-28'],
    [-32600, 'go away'],
  ] as const) {
    const { channel, asked } = backend({ initialize: { kind: 'error', error: { code, message } } });
    await errorOf(shakeHands(channel, { client, first: 'legacy', era: 'legacy', profile: PROFILE }));
    assert.equal(asked(), ['initialize'], message);
  }
});

test('offers the next older revision once when the params are refused without a reason', async () => {
  const { channel, received } = backend({ initialize: Array(9).fill(fails(-32602)) });
  const refusal = await errorOf(
    shakeHands(channel, { client, first: 'legacy', era: 'legacy', profile: PROFILE }),
  );
  assert.match(refusal.message, 'it refused the handshake (codes -32602)');
  const offered = received.map(({ params }) => params?.protocolVersion);
  assert.equal(offered, ['2025-11-25', '2025-06-18']);
});

test('the failure has the status of the last refusal over HTTP', async () => {
  const gone = { kind: 'error', error: { code: -32001, message: 'no' }, status: 404, waitMs: 5 } as const;
  const { channel } = backend({ initialize: gone, 'server/discover': gone, ping: gone, 'tools/list': gone });
  const failure = await errorOf(shakeHands(channel, { client, first: 'modern' }));
  assert.ok(failure instanceof GatewayError);
  assert.equal(failure.facts.refusal, { status: 404, waitMs: 5 });
});

test('tries only the era that the registration fixes', async () => {
  const both = { initialize: initialized('2025-11-25'), 'server/discover': discovered };
  for (const first of ['legacy', 'modern'] as const) {
    const legacy = backend(both);
    const own = await knownAfter(legacy.channel, { client, first, era: 'legacy' });
    assert.equal([own, legacy.asked()], [legacyHandshake('2025-11-25'), ['initialize']]);
    const modern = backend(both);
    const other = await knownAfter(modern.channel, { client, first, era: 'modern', profile: PROFILE });
    assert.equal([other, modern.asked()], [modernHandshake, ['server/discover']]);
  }
});

test('distinguishes refusals from failures', async () => {
  const profile = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} };
  const none = { kind: 'none', detail: 'POST /mcp was answered with HTTP 404' } as const;
  const broken = backendUnavailable('connection refused', { delivered: 'no' });
  for (const [initialize, expected] of [
    [fails(-32022), true],
    [fails(-32603), true],
    [none, true],
    [initialized('2026-07-28'), true],
    [gives({ resultType: 'complete' }), true],
    [gives('done'), false],
    [broken, false],
  ] as const) {
    const { channel, received } = backend({ initialize, 'server/discover': discovered });
    const error = await errorOf(shakeHands(channel, { client, profile, first: 'legacy' }));
    assert.is(isRefusal(error), expected, error.message);
    assert.is(received.length, 1);
  }
  assert.is(isRefusal(new Error('anything else')), false);
});

test('names the HTTP answer when no answer was JSON-RPC', async () => {
  const none = { kind: 'none', detail: 'POST /mcp was answered with HTTP 404' } as const;
  const methods = ['server/discover', 'initialize', 'ping', 'tools/list'];
  const nothing = Object.fromEntries(methods.map((method) => [method, none]));
  const error = await errorOf(shakeHands(backend(nothing).channel, { client, first: 'modern' }));
  const found = error.message;
  assert.is(found, 'The backend is unavailable: POST /mcp was answered with HTTP 404: not an MCP server.');
  const mixed = await errorOf(shakeHands(backend({ initialize: none }).channel, { client, first: 'modern' }));
  assert.match(
    mixed.message,
    'it refused the handshake (codes -32601); POST /mcp was answered with HTTP 404',
  );
});

test('fails when the answer is not an object, or not JSON', async () => {
  const cut = { kind: 'result', result: JsonText.ofBytes(Buffer.from('{"cut')) } as const;
  for (const answer of [gives('hello'), gives(null), cut]) {
    const { channel } = backend({ initialize: answer });
    const error = await errorOf(shakeHands(channel, { client, first: 'legacy' }));
    assert.is(error.code, 'BACKEND_UNAVAILABLE');
  }
});

test('accepts a server that gives neither a name nor capabilities', async () => {
  const { channel } = backend({
    initialize: gives({ protocolVersion: '2025-11-25', serverInfo: { name: 7 } }),
  });
  assert.equal(await knownAfter(channel, { client, first: 'legacy' }), {
    era: 'legacy',
    protocolVersion: '2025-11-25',
    serverInfo: { name: 'unnamed', version: '' },
    capabilities: {},
  });
});

// Metadata and headers of requests in each era, and requests of the backend.

const modern = { era: 'modern', protocolVersion: '2026-07-28' } as const;
const legacy = { era: 'legacy', protocolVersion: '2025-11-25' } as const;
test('adds revision, client info and empty capabilities to a modern request, and keeps other metadata of the caller', () => {
  const ours = {
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': client,
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  };
  const own = { traceparent: 't', 'io.modelcontextprotocol/clientCapabilities': { sampling: {} } };
  const _meta = { ...own, 'io.modelcontextprotocol/protocolVersion': '1999-01-01' };
  const given = { method: 'tools/call', params: { name: 'echo', _meta } };
  const before = structuredClone(given);
  assert.equal(withEraMetadata(given, modern, client).params, { name: 'echo', _meta: { ...ours, ...own } });
  assert.equal(given, before, 'what was given is not touched');
  assert.equal(withEraMetadata({ method: 'tools/list' }, modern, client).params, { _meta: ours });
});

test('modern headers repeat method, name and mirrored parameters, and no other header of the caller', () => {
  const headers = {
    'mcp-param-region': 'eu',
    'MCP-Param-A': 'b',
    cookie: 'x',
    'mcp-method': 'y',
    'mcp-name': 'z',
  };
  const call = { method: 'tools/call', params: { name: 'echo' }, headers };
  assert.equal(eraHeaders(withEraMetadata(call, modern, client), modern), {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'echo',
    'mcp-param-region': 'eu',
    'MCP-Param-A': 'b',
  });
  assert.equal(eraHeaders(call, legacy), { 'mcp-protocol-version': '2025-11-25' });
  for (const [method, params, name] of [
    ['tools/list', {}, undefined],
    ['prompts/get', { name: 'greet me' }, 'greet me'],
    ['resources/read', { uri: 'file:///a%20b' }, 'file:///a%20b'],
    ['tasks/get', { taskId: '1' }, '1'],
    ['tasks/update', { taskId: '1' }, '1'],
    ['tasks/cancel', { taskId: '1' }, '1'],
    ['tools/call', { name: 'Übung' }, '=?base64?w5xidW5n?='],
  ] as const)
    assert.is(eraHeaders({ method, params }, modern)['mcp-name'], name);
});

test('names the revision to legacy servers after the handshake, and nothing to bare ones', () => {
  assert.equal(eraHeaders({ method: 'initialize' }, { era: 'legacy', protocolVersion: '' }), {});
  assert.equal(eraHeaders({ method: 'tools/list' }, { era: 'bare', protocolVersion: '1' }), {});
});

test('puts a progress token into params whose _meta is not an object', () => {
  const request = { method: 'tools/call', params: { _meta: 'nonsense' }, wantsProgress: true };
  assert.equal(JSON.parse(textWithToken(request, 5)).params, { _meta: { progressToken: 5 } });
});

test('asks a client for declared capabilities, and unknown methods if it declared anything', () => {
  const sampler = { ...noCapability, capabilities: { sampling: {} } };
  for (const [method, profile, isAsked] of [
    ['sampling/createMessage', sampler, true],
    ['tasks/get', sampler, true],
    ['roots/list', sampler, false],
    ['tasks/get', noCapability, false],
    ['tasks/get', undefined, false],
  ] as const)
    assert.is(gatewayAnswerTo(method, profile) === 'ask', isAsked, method);
});

test.run();

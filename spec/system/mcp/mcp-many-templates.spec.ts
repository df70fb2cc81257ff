// Forty templates as one server, some of which are dead, slow, hang, talk nonsense or never come to an end: lists are there
// soon, in one order, every name once, and each name leads back to its tool, also in a gateway that was just started.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/account.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { createGateway, type Gateway } from '../../../src/gateway.ts';
import type { InProcessHandler } from '../../../src/transports/transport.ts';
import { rpcError, text } from '../../helpers/function-backend.ts';
import { suite } from '../../helpers/suite.ts';
import { parsed, RecordedReply } from '../../protocol/recorded-reply.ts';

const test = suite('journey: forty templates as one', { timeoutMs: 60_000 });

const TEMPLATES = 34;
const TOOLS = 500;
const PAGE = 100;
const MOST_CHARACTERS = 64;
/** A list waits a second for those who are late; the rest is for a busy machine. */
const SOON_MS = 6_000;

/** Short ones that all templates have, and long ones that differ in their last characters only. */
const NAMES = Array.from({ length: TOOLS }, (_, number) =>
  number % 2 === 0 ? `search_${number}` : `${'find_in_all_documents_'.repeat(4)}${number}`,
);

/** Lists its tools in pages, and says which one was called. */
function paging(template: string): InProcessHandler {
  const tools = NAMES.map((name) => ({
    name,
    inputSchema: { type: 'object' },
    description: `of ${template}`,
  }));
  return ({ method, params }) => {
    if (method === 'ping') return {};
    if (method === 'tools/call') return text(`${template} ${String(params?.name)}`);
    if (method !== 'tools/list') throw rpcError(-32601, 'not served');
    const from = Number(params?.cursor ?? 0);
    const page = tools.slice(from, from + PAGE);
    return from + PAGE < tools.length ? { tools: page, nextCursor: `${from + PAGE}` } : { tools: page };
  };
}

type List = (cursor: unknown) => unknown;
const listing =
  (list: List): InProcessHandler =>
  ({ method, params }) => {
    if (method === 'ping') return {};
    if (method !== 'tools/list') throw rpcError(-32601, 'not served');
    return list(params?.cursor);
  };
const sound = (name: string) => ({ name, inputSchema: { type: 'object' } });

/** Templates that stand between the others. */
const BAD: Readonly<Record<string, List>> = {
  't05-dead': () => {
    throw rpcError(-32603, 'dead');
  },
  't10-slow': async () => {
    await delay(1_500);
    return { tools: [sound('slow')] };
  },
  't15-hanging': () => new Promise(() => undefined),
  't20-garbage': () => ({
    tools: [
      7,
      null,
      'x',
      {},
      { name: 7 },
      { name: '' },
      { name: 'x'.repeat(100_000) },
      [sound('inner')],
      { name: 'twice' },
      { name: 'twice', inputSchema: 'none' },
    ],
    nextCursor: 7,
  }),
  't25-endless': (cursor) => ({ tools: [sound('again')], nextCursor: `${Number(cursor ?? 0) + 1}` }),
};

async function started(): Promise<Gateway> {
  const gateway = await createGateway();
  const good = Array.from({ length: TEMPLATES }, (_, number) => `t${String(number).padStart(2, '0')}-good`);
  const all: [string, InProcessHandler][] = [
    ...good.map((name): [string, InProcessHandler] => [name, paging(name)]),
    ...Object.entries(BAD).map(([name, list]): [string, InProcessHandler] => [name, listing(list)]),
  ];
  await Promise.all(
    all.map(([template, handler]) => gateway.register(template, { id: 'one', handler }, { waitMs: 10_000 })),
  );
  // Nobody serves there; who registers it does not wait for that.
  await gateway.register('t30-unreachable', { id: 'one', endpoint: 'http://127.0.0.1:9/mcp' });
  return gateway;
}

async function ask(gateway: Gateway, method: string, params: JsonObject = {}) {
  const reply = new RecordedReply();
  const meta = (name: string) => `io.modelcontextprotocol/${name}`;
  const _meta = { [meta('protocolVersion')]: '2026-07-28', [meta('clientCapabilities')]: {} };
  await gateway.mcp.handle(
    {
      method: 'POST',
      headers: {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(typeof params.name === 'string' ? { 'mcp-name': params.name } : {}),
      },
      body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } })),
      template: undefined,
      principal: ANONYMOUS,
      consumeRateLimit: () => {},
    },
    reply,
  );
  while (!reply.isAnswered || reply.opened?.isEnded === false) await delay(2);
  return parsed(reply.body ?? reply.opened?.events.at(-1)?.data ?? '{}');
}

async function timedList(gateway: Gateway) {
  const begunAtMs = performance.now();
  const { result } = await ask(gateway, 'tools/list');
  const names: string[] = Object(result).tools.map(({ name }: JsonObject) => name);
  return { names, tools: Object(result).tools, tookMs: performance.now() - begunAtMs };
}

const ofTemplate = (names: readonly string[], template: string) =>
  names.filter((name) => name.startsWith(`${template}__`));

test('lists are there soon, in one order, and every name once', async () => {
  const gateway = await started();
  try {
    const first = await timedList(gateway);
    assert.ok(first.tookMs < SOON_MS, `the first took ${first.tookMs} ms`);
    assert.is(new Set(first.names).size, first.names.length);
    assert.ok(first.names.every((name) => name.length <= MOST_CHARACTERS));
    assert.is(first.names.filter((name) => name.includes('-good__')).length, TEMPLATES * TOOLS);
    assert.equal(ofTemplate(first.names, 't20-garbage'), ['t20-garbage__twice']);
    assert.ok(first.tools.every(({ inputSchema }: JsonObject) => Object(inputSchema).type === 'object'));
    const templates = [...new Set(first.names.map((name) => name.slice(0, name.indexOf('__'))))];
    assert.equal(templates, templates.toSorted());
    const silent = ['t05-dead', 't15-hanging', 't30-unreachable'];
    assert.equal(
      silent.flatMap((template) => ofTemplate(first.names, template)),
      [],
    );

    const second = await timedList(gateway);
    assert.ok(second.tookMs < 1_000, `nobody waits twice for who is late: ${second.tookMs} ms`);
    await delay(1_000);
    const third = await timedList(gateway);
    assert.equal(ofTemplate(third.names, 't10-slow'), ['t10-slow__slow']);
    const others = (names: readonly string[]) => names.filter((name) => !/slow__|endless__/.test(name));
    assert.equal(others(third.names), others(first.names));
    assert.equal(ofTemplate(third.names, 't25-endless'), ['t25-endless__again']);
  } finally {
    await gateway.close({ graceMs: 0 });
  }
});

test('a name means the same tool in another gateway, listed there or not', async () => {
  const [one, other] = await Promise.all([started(), started()]);
  try {
    const { names } = await timedList(one);
    const picked = ofTemplate(names, 't07-good').filter((_, index) => index % 99 < 2);
    assert.ok(picked.some((name) => name.length === MOST_CHARACTERS));
    for (const name of picked) {
      const index = ofTemplate(names, 't07-good').indexOf(name);
      const expected = text(`t07-good ${NAMES[index]}`).content;
      assert.equal(Object((await ask(other, 'tools/call', { name })).result).content, expected, name);
      assert.equal(Object((await ask(one, 'tools/call', { name })).result).content, expected, name);
    }
  } finally {
    await Promise.all([one.close({ graceMs: 0 }), other.close({ graceMs: 0 })]);
  }
});

test.run();

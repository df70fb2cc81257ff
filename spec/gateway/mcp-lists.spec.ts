// What clients of all templates hear when templates and instances come and go, over a gateway with functions as backends:
// who may use the template hears it, on the stream of either era, and nobody else.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { Principal } from '../../src/domain/account.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { createGateway, type Gateway } from '../../src/gateway.ts';
import type { McpRequest } from '../../src/protocol/endpoint-types.ts';
import { serving, text } from '../helpers/function-backend.ts';
import { suite } from '../helpers/suite.ts';
import { parsed, RecordedReply } from '../protocol/recorded-reply.ts';

const test = suite('lists of all templates of a gateway');
const CHANGED = 'notifications/tools/list_changed';
/** Longer than a second, between two notices, and what goes before one. */
const QUIET_MS = 1_300;

let gateway: Gateway;
test.before.each(async () => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  gateway = await createGateway();
  await add('a', 'one', 'read');
});
test.after.each(async () => {
  await gateway.close({ graceMs: 0 });
  mock.timers.reset();
});

async function add(template: string, id: string, ...tools: readonly string[]) {
  const handler = serving(Object.fromEntries(tools.map((name) => [name, () => text(`${template} ${id}`)])));
  await gateway.register(template, { id, handler }, { waitMs: 5_000 });
}

const ALL: Principal = { id: 'user:all', kind: 'user', name: 'all', scopes: new Set(['tools:call']) };
const ONLY_A: Principal = { ...ALL, id: 'key:a', kind: 'api-key', templates: new Set(['a']) };

class Client {
  readonly #principal: Principal;
  #session: Record<string, string> = {};
  #stream: RecordedReply | undefined;

  constructor(principal: Principal) {
    this.#principal = principal;
  }

  /** Opens a session and its stream. */
  async openLegacy() {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'spec', version: '1' },
    };
    const { headers } = await this.#send('POST', { id: 0, method: 'initialize', params });
    this.#session = { 'mcp-session-id': headers[headers.indexOf('Mcp-Session-Id') + 1] ?? '' };
    this.#stream = await this.#send('GET', undefined);
  }

  async openModern() {
    const notifications = { toolsListChanged: true };
    this.#stream = await this.#send('POST', this.#modern('subscriptions/listen', { notifications }));
  }

  /** Notices of changed tools so far. */
  get notices(): number {
    return (this.#stream?.events.messages ?? []).filter(({ method }) => method === CHANGED).length;
  }

  async tools(): Promise<string[]> {
    const { body, opened } = await this.#send('POST', this.#modern('tools/list', {}), {});
    const { result } = parsed(body ?? opened?.events.at(-1)?.data ?? '{}');
    return Object(result).tools.map(({ name }: { name: string }) => name);
  }

  #modern(method: string, params: JsonObject) {
    const meta = (name: string) => `io.modelcontextprotocol/${name}`;
    const _meta = { [meta('protocolVersion')]: '2026-07-28', [meta('clientCapabilities')]: {} };
    return { id: 1, method, params: { ...params, _meta } };
  }

  async #send(method: McpRequest['method'], message: JsonObject | undefined, session = this.#session) {
    const reply = new RecordedReply();
    const { _meta } = Object(message?.params);
    const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': String(message?.method) };
    await gateway.mcp.handle(
      {
        method,
        headers: {
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          ...(_meta === undefined ? session : modern),
        },
        body: Buffer.from(message === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', ...message })),
        template: undefined,
        principal: this.#principal,
        consumeRateLimit: () => {},
      },
      reply,
    );
    await until(() => reply.isAnswered);
    return reply;
  }
}

/** Time passes while it is not so. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await pass(10);
}

async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) {
    mock.timers.tick(10);
    await turn();
  }
}

/** Clients of both eras that listen, of who may use everything and of who may use `a` alone. */
async function listening() {
  const clients = { legacy: new Client(ALL), modern: new Client(ALL) };
  const barred = [new Client(ONLY_A), new Client(ONLY_A)] as const;
  await Promise.all([clients.legacy.openLegacy(), clients.modern.openModern()]);
  await Promise.all([barred[0].openLegacy(), barred[1].openModern()]);
  const all = [clients.legacy, clients.modern];
  return { ...clients, all, barred };
}

test('tells of a template that comes, and of one that goes, those who may use it', async () => {
  const { all, modern, barred } = await listening();
  assert.equal(await modern.tools(), ['a__read']);
  await add('b', 'one', 'write');
  await until(() => all.every(({ notices }) => notices === 1));
  assert.equal(await modern.tools(), ['a__read', 'b__write']);
  await pass(QUIET_MS);
  await gateway.deregister('b', 'one');
  await until(() => all.every(({ notices }) => notices === 2));
  assert.equal(await modern.tools(), ['a__read']);
  await pass(QUIET_MS);
  assert.equal(
    [...all, ...barred].map(({ notices }) => notices),
    [2, 2, 0, 0],
  );
  assert.equal(await barred[0].tools(), ['a__read']);
});

test('tells once of many templates that come together', async () => {
  const { all, barred } = await listening();
  await Promise.all(Array.from({ length: 20 }, (_, number) => add(`t${number}`, 'one', 'read')));
  await until(() => all.every(({ notices }) => notices > 0));
  await pass(QUIET_MS);
  assert.ok(
    all.every(({ notices }) => notices <= 2),
    'one, and one for those that came later',
  );
  assert.equal(
    barred.map(({ notices }) => notices),
    [0, 0],
  );
});

test('tells when the instances of a template are replaced by others with other tools', async () => {
  const { all, modern } = await listening();
  assert.equal(await modern.tools(), ['a__read']);
  await add('a', 'one', 'other');
  await until(() => all.every(({ notices }) => notices > 0));
  await pass(QUIET_MS);
  assert.equal(await modern.tools(), ['a__other']);
  await gateway.deregister('a', 'one');
  await pass(QUIET_MS);
  const before = all.map(({ notices }) => notices);
  await add('a', 'two', 'third');
  await until(() => all.every(({ notices }, index) => notices > (before[index] ?? 0)));
  assert.equal(await modern.tools(), ['a__third']);
});

test('serves no list of an instance that is gone, nor one of a template without any', async () => {
  const client = new Client(ALL);
  await add('a', 'two', 'read');
  assert.equal(await client.tools(), ['a__read']);
  await gateway.deregister('a', 'one');
  await gateway.deregister('a', 'two');
  assert.equal(await client.tools(), []);
});

test.run();

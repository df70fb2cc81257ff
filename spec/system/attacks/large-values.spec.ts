// Lists and results that cost more memory as values than as bytes, inside 1 GiB: results are forwarded as bytes, lists are bounded
// before they are parsed. The gateway survives and serves other callers.

import type { ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import type { Json } from '../../fixtures/wire.ts';
import { newKey } from '../../helpers/clients/caller.ts';
import { ModernClient } from '../../helpers/clients/mcp-client.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { canLimitMemory, MemoryLimit } from '../../helpers/programs/memory-limit.ts';
import { suite } from '../../helpers/suite.ts';
import { type RawServer, startRawServer } from '../../transports/raw-server.ts';
import { type Asked, result, serving } from '../../transports/scripted-server.ts';
import { INITIALIZED, MIB, nothing, othersAreServed, startToolServer } from './attack.ts';

const test = suite('large values in 1 GiB', { timeoutMs: 240_000 });
const withLimit = test.needs(canLimitMemory, 'needs the right to make control groups (root on Linux)');

type Credentials = Readonly<Record<string, string>>;

/** Objects without fields that fit into this many bytes. */
const objectsIn = (bytes: number) => Math.floor(bytes / 3);
/** A page of 30 MiB, and one just below the number of values. */
const LISTS = { huge: objectsIn(30 * MIB), full: 950_000 };
const RESULT_BYTES = 30 * MIB;
const TIMES = 30;
const AT_ONCE = 24;
/** Instances that list these tools: each keeps its list. */
const COPIES = 6;

let lists: readonly RawServer[] = [];
let backend: RawServer;
let memory: MemoryLimit;
let harness: McpHarness;
let other: Credentials;
let attacker: Credentials;
if (canLimitMemory) {
  test.before(async () => {
    backend = await startToolServer({
      fast: nothing,
      structured: answering(
        '{"structuredContent":{"list":[',
        '{}',
        objectsIn(RESULT_BYTES),
        ']},"content":[]}',
      ),
      failed: answering('{"isError":true,"content":[', '{}', objectsIn(RESULT_BYTES), ']}'),
      meta: answering('{"content":[],"_meta":{"list":[', '{}', objectsIn(RESULT_BYTES), ']}}'),
    });
    lists = await Promise.all(Object.values(LISTS).map(startListServer));
    memory = new MemoryLimit(1024 * MIB);
    harness = await startGuarded({ memory });
    // The attacked instance is another one: its incomplete answers have their own bound.
    for (const template of ['demo', 'large'])
      await register(harness.admin, template, [{ id: template, endpoint: backend.url }]);
    for (const [index, name] of Object.keys(LISTS).entries()) {
      const endpoint = lists[index]?.url ?? '';
      await register(harness.admin, name, [{ id: name, endpoint }]);
    }
    [other, attacker] = [await key(), await key()];
  });
  test.after(async () => {
    await harness.remove();
    await memory.remove();
    await Promise.all([backend, ...lists].map((server) => server.close()));
  });
}

async function key(): Promise<Credentials> {
  const scopes = ['gateway:read', 'gateway:write', 'tools:call'];
  return (await newKey(harness.admin, 'spec', scopes)).headers;
}

/** Writes a result that is made of a repeated part. */
function answering(head: string, repeated: string, times: number, tail: string) {
  const bytes = Buffer.from(`${head}${Array(times).fill(repeated)}${tail}}`);
  return (response: ServerResponse, { id }: Asked): void => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`);
    response.end(bytes);
  };
}

/** A server whose list of tools has so many values. */
function startListServer(values: number): Promise<RawServer> {
  const list = answering(
    '{"tools":[{"name":"fast","inputSchema":{"type":"object","x":[',
    '{}',
    values,
    ']}}]}',
  );
  const initialize = result(INITIALIZED);
  return startRawServer(serving({ initialize, ping: result({}), 'tools/list': list, 'tools/call': nothing }));
}

interface Sent {
  readonly path: string;
  /** Default: none, for a GET. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends each of these requests many times, some at the same time; prints and returns how often which answer came. */
async function attack(
  what: string,
  requests: readonly Sent[],
  { times = TIMES, atOnce = AT_ONCE } = {},
): Promise<readonly string[]> {
  const answers = new Map<string, number>();
  const waiting = Array.from({ length: times }, () => requests).flat();
  const work = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { path, body, headers } = next;
      const post = { method: 'POST', body: body ?? '' };
      const response = await fetch(harness.url + path, {
        ...(body === undefined ? {} : post),
        headers: { 'Content-Type': 'application/json', ...headers, ...attacker },
      });
      // The slowest answers are cut off.
      const length = await response.bytes().then(
        (bytes) => bytes.length,
        () => undefined,
      );
      const size = length === undefined ? 'cut' : length > MIB ? `${Math.round(length / MIB)} MiB` : 'small';
      const outcome = `${response.status} ${size}`;
      answers.set(outcome, (answers.get(outcome) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  process.stdout.write(`  ${what}: ${JSON.stringify(Object.fromEntries(answers))}\n`);
  return [...answers.keys()];
}

/** A request of a modern client. */
function modern(template: string | undefined, method: string, params: Json = {}): Sent {
  const path = template === undefined ? '/mcp' : `/mcp/${template}`;
  const { headers, body } = new ModernClient(harness.wire, path).request(method, params);
  return { path, headers, body };
}

for (const tool of ['structured', 'failed', 'meta']) {
  withLimit(`a result with 10 million values (${tool}) is forwarded as bytes`, () =>
    othersAreServed(harness, other, tool, async () => {
      const call = JSON.stringify({ server_id: 'large', tool_name: tool, arguments: {} });
      const ofServer = await attack('surface B', [{ path: '/tools/call', body: call }]);
      const rest = await attack('REST', [
        { path: '/mcp/large/tools/call', body: JSON.stringify({ name: tool }) },
      ]);
      const mcp = await attack('MCP', [modern('large', 'tools/call', { name: tool, arguments: {} })]);
      for (const answers of [ofServer, rest, mcp])
        assert.ok(
          answers.some((outcome) => outcome.endsWith('30 MiB')),
          `${answers}`,
        );
    }),
  );
}

for (const [index, name] of Object.keys(LISTS).entries()) {
  withLimit(`a list of tools that is ${name} is bounded`, () =>
    othersAreServed(harness, other, name, async () => {
      const { url = '' } = lists[index] ?? {};
      const instance = JSON.stringify({ template_name: 'tried', endpoint: url });
      // Reading such a list takes a tenth of a second of the processor.
      const few = { times: 12, atOnce: 3 };
      await attack('REST', [{ path: `/mcp/${name}/tools/list` }], few);
      await attack('MCP', [modern(name, 'tools/list')], few);
      await attack('all templates', [modern(undefined, 'tools/list')], few);
      await attack('connection tests', [{ path: '/gateway/test', body: instance }], { times: 12, atOnce: 2 });
      for (let copy = 0; copy < COPIES; copy += 1)
        await register(harness.admin, name, [{ id: `${name}-${copy}`, endpoint: url }]);
    }),
  );
}

test.run();

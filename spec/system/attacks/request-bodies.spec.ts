// Request bodies of one caller, inside 1 GiB: however large, full of values, slow or many they are, the gateway lives and
// serves the others.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { caller, newKey } from '../../helpers/caller.ts';
import { type Flood, flood } from '../../helpers/flood.ts';
import { head } from '../../helpers/http-raw.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/mcp-program.ts';
import { canLimitMemory, MemoryLimit } from '../../helpers/memory-limit.ts';
import { suite } from '../../helpers/suite.ts';

const MIB = 1024 * 1024;
const ATTACK_MS = 4_000;
/** So long a call of the attacker holds its body. */
const SLOW_MS = 3_000;
const test = suite('request bodies in 1 GiB');
const withLimit = test.needs(canLimitMemory, 'needs the right to make control groups (root on Linux)');

/** An HTTP server with the tools `fast`, and `slow`. */
const backend = createServer(async (request, response) => {
  const body = request.method === 'POST' ? await readText(request) : '{}';
  // Of a call only its head is looked at: the backend is not what is attacked.
  const id = /"id":(\d+)/.exec(body)?.[1];
  const method = /"method":"([^"]+)"/.exec(body)?.[1] ?? '';
  const capabilities = { capabilities: { tools: {} }, serverInfo: { name: 'slow', version: '1' } };
  const results: Readonly<Record<string, object>> = {
    initialize: { protocolVersion: '2025-11-25', ...capabilities },
    'tools/list': { tools: ['slow', 'fast'].map((name) => ({ name, inputSchema: { type: 'object' } })) },
    'tools/call': { content: [] },
  };
  if (body.includes('"name":"slow"')) await sleep(SLOW_MS);
  const answer =
    method === 'server/discover'
      ? { error: { code: -32601, message: 'Method not found' } }
      : { result: results[method] ?? {} };
  response.writeHead(id === undefined ? 202 : 200, { 'content-type': 'application/json' });
  response.end(id === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id: Number(id), ...answer }));
});

let memory: MemoryLimit;
let harness: McpHarness;
let other: Readonly<Record<string, string>>;
if (canLimitMemory) {
  test.before(async () => {
    await once(backend.listen(0, '127.0.0.1'), 'listening');
    memory = new MemoryLimit(1024 * MIB);
    harness = await startGuarded({ memory });
    const { port } = backend.address() as AddressInfo;
    await register(harness.admin, 'demo', [{ id: 'one', endpoint: `http://127.0.0.1:${port}/mcp` }]);
    other = await key();
  });
  test.after(async () => {
    await harness.remove();
    await memory.remove();
    backend.closeAllConnections();
    backend.close();
  });
}

async function key(): Promise<Readonly<Record<string, string>>> {
  return (await newKey(harness.admin, 'spec')).headers;
}

/** Attacks, and meanwhile calls as another caller, one call after the other, each of which is served; prints what it was like. */
async function othersAreServed(what: string, attack: () => Promise<unknown>): Promise<void> {
  const calls = caller(harness.url, other);
  const statuses = new Set<number>();
  const latencies: number[] = [];
  let mostRss = 0;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const startMs = performance.now();
      statuses.add(
        await calls('POST /mcp/demo/tools/call', { name: 'fast' }).then(
          ({ status }) => status,
          () => 0,
        ),
      );
      latencies.push(performance.now() - startMs);
      mostRss = Math.max(mostRss, rss());
      await sleep(20);
    }
  })();
  await attack().finally(() => {
    isOver = true;
  });
  await watching;
  latencies.sort((one, another) => one - another);
  const at = (share: number): number => Math.round(latencies[Math.floor(latencies.length * share)] ?? 0);
  process.stdout.write(`${what}: rss ${mostRss} MiB, others p50 ${at(0.5)} ms, p95 ${at(0.95)} ms\n`);
  assert.equal([...statuses], [200]);
  assert.ok(mostRss > 0 && mostRss < 800, `rss ${mostRss} MiB`);
  assert.ok(at(0.5) < 1_000, `p50 ${at(0.5)} ms`);
}

/** In MiB. */
function rss(): number {
  const status = readFileSync(`/proc/${harness.program.process.pid}/status`, 'utf8');
  const [, kib = '0'] = /VmRSS:\s+(\d+)/.exec(status) ?? [];
  return Math.round(Number(kib) / 1024);
}

/** Calls of `slow` with such arguments, over and over, by a caller who has not called yet; whether some of them are served. */
const FLOODS: Readonly<
  Record<string, readonly [connections: number, args: Flood['body'], isServed?: boolean]>
> = {
  '101 calls with 1.3 million empty objects are refused': [101, ['{"x":[', '{}', 1_300_000, ']}'], false],
  '101 calls with bodies just below the number of values are bounded': [
    101,
    ['{"x":[', '{}', 99_000, ']}'],
    true,
  ],
  '101 calls with 3.9 MB of text are bounded': [101, ['{"x":"', 'xxx', 970_000, '"}']],
  '280,000 different keys do not block the others': [10, ['{', '"k#":1', 280_000, '}']],
  'as many different keys as are allowed do not block the others': [10, ['{', '"k#":1', 49_000, '}']],
};
for (const [name, [connections, [first, repeated, times, last], isServed]] of Object.entries(FLOODS)) {
  withLimit(name, () =>
    othersAreServed(name, async () => {
      const statuses = await flood({
        url: `${harness.url}/mcp/demo/tools/call`,
        headers: { 'content-type': 'application/json', ...(await key()) },
        body: [`{"name":"slow","arguments":${first}`, repeated, times, `${last}}`],
        ...{ connections, lastsMs: ATTACK_MS },
      });
      process.stdout.write(`  the attacker was answered ${JSON.stringify(Object.fromEntries(statuses))}\n`);
      if (isServed !== undefined) assert.is(statuses.has(200), isServed);
    }),
  );
}

withLimit('100 uploads that are held open take no memory', () =>
  othersAreServed('100 uploads held', async () => {
    const types = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
    const upload = head('POST /mcp/demo', { ...(await key()), ...types, 'Content-Length': '4000000' });
    const sockets = Array.from({ length: 100 }, () => {
      const socket = connect(Number(new URL(harness.url).port), '127.0.0.1').on('error', () => {});
      socket.write(upload);
      socket.write(Buffer.alloc(3_900_000, 0x20));
      return socket.resume();
    });
    await sleep(ATTACK_MS);
    for (const socket of sockets) socket.destroy();
  }),
);

test.run();

// Request bodies of one caller, inside 1 GiB: however large, full of values, slow or many they are, the gateway lives and
// serves the others.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { type Flood, flood } from '../../helpers/flood.ts';
import { canLimitMemory, MemoryLimit } from '../../helpers/memory-limit.ts';
import { Program } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';

const MIB = 1024 * 1024;
const ATTACK_MS = 8_000;
const test = suite('request bodies in 1 GiB');
const withLimit = test.needs(canLimitMemory, 'needs the right to make control groups (root on Linux)');

/** An HTTP server with the tools `fast`, and `slow`, which answers after 10 s. */
const backend = createServer(async (request, response) => {
  const body = request.method === 'POST' ? await readText(request) : '{}';
  // Of a call only its head is looked at: the backend is not what is attacked.
  const id = /"id":(\d+)/.exec(body)?.[1];
  const method = /"method":"([^"]+)"/.exec(body)?.[1];
  const capabilities = { capabilities: { tools: {} }, serverInfo: { name: 'slow', version: '1' } };
  const results: Readonly<Record<string, object>> = {
    initialize: { protocolVersion: '2025-11-25', ...capabilities },
    'tools/list': { tools: ['slow', 'fast'].map((name) => ({ name, inputSchema: { type: 'object' } })) },
    'tools/call': { content: [] },
  };
  if (body.includes('"name":"slow"')) await sleep(10_000);
  const isKnown = id !== undefined && method !== 'server/discover';
  const error = { error: { code: -32601, message: 'Method not found' } };
  response.writeHead(id === undefined ? 202 : 200, { 'content-type': 'application/json' });
  if (id === undefined) response.end();
  else
    response.end(
      JSON.stringify({
        jsonrpc: '2.0',
        id: Number(id),
        ...(isKnown ? { result: results[method ?? ''] ?? {} } : error),
      }),
    );
});

interface Harness {
  readonly url: string;
  readonly port: number;
  /** Makes a key. */
  readonly key: () => Promise<string>;
  readonly other: string;
  readonly program: Program;
  readonly memory: MemoryLimit;
}

const started = (async (): Promise<Harness> => {
  backend.listen(0, '127.0.0.1');
  await once(backend, 'listening');
  const memory = new MemoryLimit(1024 * MIB);
  const env = { GATEWAY_AUTH_ENABLED: 'true', GATEWAY_ADMIN_PASSWORD: 'correct horse' };
  const program = new Program(['gateway', 'start', '--port', '0'], { memory, env });
  const url = await program.url();
  const post = async (
    path: string,
    token: string,
    body: object,
  ): Promise<Readonly<Record<string, unknown>>> => {
    const headers = {
      'content-type': 'application/json',
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
    };
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    assert.ok(answer.ok, `${path}: ${answer.status}`);
    return Object(await answer.json());
  };
  let token = '';
  for (let attempt = 0; token === '' && attempt < 50; attempt += 1) {
    const login = { username: 'admin', password: 'correct horse' };
    token = await post('/auth/login', '', login).then(
      ({ access_token }) => String(access_token),
      () => '',
    );
    if (token === '') await sleep(200);
  }
  const { port } = backend.address() as AddressInfo;
  const instance = { id: 'one', endpoint: `http://127.0.0.1:${port}/mcp` };
  await post('/gateway/register?wait=30', token, { template_name: 'demo', instance });
  const key = async (): Promise<string> =>
    String((await post('/auth/api-keys', token, { name: 'spec', permissions: ['tools:call'] })).key);
  return {
    url,
    port: Number(new URL(url).port),
    key,
    other: await key(),
    program,
    memory,
  };
})();

if (canLimitMemory) {
  test.after(async () => {
    const { program, memory } = await started;
    await program.remove();
    await memory.remove();
    backend.closeAllConnections();
    backend.close();
  });
} else backend.unref();

/** Attacks, and meanwhile calls as another caller, one call after the other; prints and gives what it was like. */
async function during(what: string, attack: (harness: Harness, isOver: () => boolean) => Promise<unknown>) {
  const harness = await started;
  const endsAt = performance.now() + ATTACK_MS;
  const isOver = () => performance.now() > endsAt;
  const statuses = new Map<number, number>();
  const latencies: number[] = [];
  let mostRss = 0;
  const watching = (async () => {
    while (!isOver()) {
      const startMs = performance.now();
      const status = await call(harness, harness.other, '{"name":"fast"}');
      latencies.push(performance.now() - startMs);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      mostRss = Math.max(mostRss, rssOf(harness.program));
      await sleep(20);
    }
  })();
  await Promise.all([watching, attack(harness, isOver)]);
  latencies.sort((one, other) => one - other);
  const at = (share: number): number => Math.round(latencies[Math.floor(latencies.length * share)] ?? 0);
  const answered = JSON.stringify(Object.fromEntries(statuses));
  process.stdout.write(
    `${what}: rss ${mostRss} MiB, others p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, answered ${answered}\n`,
  );
  return { mostRss, p50Ms: at(0.5), statuses };
}

async function call({ url }: Harness, key: string, body: string): Promise<number> {
  const headers = { 'content-type': 'application/json', 'x-api-key': key };
  try {
    const answer = await fetch(`${url}/mcp/demo/tools/call`, { method: 'POST', headers, body });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return 0; // the connection was cut
  }
}

/** In MiB. */
function rssOf({ process: { pid } }: Program): number {
  const [, kib = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1024);
}

/** Calls `slow` with these arguments, over and over, as a caller who has not called yet. */
async function attack(harness: Harness, connections: number, args: Flood['body']) {
  const [head, repeated, times, tail] = args;
  const statuses = await flood({
    url: `${harness.url}/mcp/demo/tools/call`,
    headers: { 'content-type': 'application/json', 'x-api-key': await harness.key() },
    body: [`{"name":"slow","arguments":${head}`, repeated, times, `${tail}}`],
    connections,
    lastsMs: ATTACK_MS,
  });
  process.stdout.write(`  the attacker was answered ${JSON.stringify(Object.fromEntries(statuses))}\n`);
  return statuses;
}

async function assertServed({ mostRss, p50Ms, statuses }: Awaited<ReturnType<typeof during>>): Promise<void> {
  assert.equal([...statuses.keys()], [200]);
  assert.ok(mostRss > 0 && mostRss < 800, `rss ${mostRss} MiB`);
  assert.ok(p50Ms < 1_000, `p50 ${p50Ms} ms`);
}

withLimit('101 calls with 1.3 million empty objects are refused', async () => {
  const seen = await during('1.3 million objects', async (harness) => {
    const statuses = await attack(harness, 101, ['{"x":[', '{}', 1_300_000, ']}']);
    assert.not(statuses.has(200));
  });
  await assertServed(seen);
});

withLimit('101 calls with bodies just below the number of values are bounded', async () => {
  const seen = await during('99,000 objects', async (harness) => {
    const statuses = await attack(harness, 101, ['{"x":[', '{}', 99_000, ']}']);
    assert.ok(statuses.has(200));
  });
  await assertServed(seen);
});

withLimit('101 calls with 3.9 MB of text are bounded', async () => {
  const seen = await during('3.9 MB of text', (harness) =>
    attack(harness, 101, ['{"x":"', 'xxx', 970_000, '"}']),
  );
  await assertServed(seen);
});

withLimit('280,000 different keys do not block the others', async () => {
  await assertServed(
    await during('280,000 keys', (harness) => attack(harness, 10, ['{', '"k#":1', 280_000, '}'])),
  );
});

withLimit('as many different keys as are allowed do not block the others', async () => {
  await assertServed(
    await during('49,000 keys', (harness) => attack(harness, 10, ['{', '"k#":1', 49_000, '}'])),
  );
});

withLimit('100 uploads that are held open take no memory', async () => {
  const seen = await during('100 uploads held', async ({ port, key }, isOver) => {
    const attacker = await key();
    const sockets: Socket[] = Array.from({ length: 100 }, () => {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.write(
        `POST /mcp/demo HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${attacker}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 4000000\r\n\r\n`,
      );
      socket.write(Buffer.alloc(3_900_000, 0x20));
      socket.resume();
      return socket;
    });
    while (!isOver()) await sleep(100);
    for (const socket of sockets) socket.destroy();
  });
  await assertServed(seen);
});

test.run();

// Answers that backends do not finish, and answers that clients do not read, against a gateway in 1 GiB: it stays alive and
// serves a well-behaved caller. Backends and clients are outside of the limit, in this process.

import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { type Caller, caller, callTool, newKey, repeatRequests } from '../../helpers/clients/caller.ts';
import { ModernClient, POST_HEADERS } from '../../helpers/clients/mcp-client.ts';
import { head } from '../../helpers/clients/raw-http.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { canLimitMemory, MemoryLimit } from '../../helpers/programs/memory-limit.ts';
import { suite } from '../../helpers/suite.ts';
import { figuresOf, INITIALIZED, MIB, nothing, startToolServer, toolsOf } from './attack.ts';

/** How long a client waits for an answer that is not finished. */
const patienceMs = 10_000;
type Headers = Readonly<Record<string, string>>;
const test = suite('a gateway in 1 GiB', { timeoutMs: 240_000 });
const withLimit = test.needs(canLimitMemory, 'needs the right to make control groups (root on Linux)');

/** Begins answers of 60 MB that never end, or ends answers of 10 MB, or small ones. */
function openBackend() {
  const large = Buffer.from(`{"content":[{"type":"text","text":"${'x'.repeat(10_000_000)}"}]}}`);
  const endless = Buffer.alloc(60_000_000, 'x');
  const begin = (response: ServerResponse, id: unknown): void => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.write(`{"jsonrpc":"2.0","id":${id},"result":`);
  };
  return startToolServer({
    small: nothing,
    large: (response, { id }) => {
      begin(response, id);
      response.end(large);
    },
    stalled: (response, { id }) => {
      begin(response, id);
      response.write('{"t":"');
      response.write(endless);
    },
  });
}

/** The same over stdio: a line of 60 MB that does not end. */
const STALLED_PROGRAM = `
const chunk = Buffer.alloc(65536, 'x');
const flood = (left) => {
  while (left > 0) {
    left -= chunk.length;
    if (!process.stdout.write(chunk)) return process.stdout.once('drain', () => flood(left));
  }
};
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  if (method === 'initialize') answer(id, ${JSON.stringify(INITIALIZED)});
  else if (method === 'tools/list') answer(id, ${JSON.stringify(toolsOf(['stalled']))});
  else if (method === 'tools/call') {
    process.stdout.write('{"jsonrpc":"2.0","id":' + id + ',"result":{"t":"');
    flood(60e6);
  }
  else answer(id, {});
});`;

/** A gateway with accounts in 1 GiB, with an instance at each template. */
async function attack(
  templates: readonly string[],
  body: (harness: McpHarness) => Promise<string>,
): Promise<void> {
  const memory = new MemoryLimit(1024 * MIB);
  const backend = await openBackend();
  const harness = await startGuarded({ memory, env: { GATEWAY_LOG_LEVEL: 'warn' } });
  const { admin, program } = harness;
  try {
    for (const template of templates) {
      const stalling = { command: process.execPath, args: ['-e', STALLED_PROGRAM] };
      const instance = template === 'pipe' ? stalling : { endpoint: backend.url };
      await register(admin, template, [{ id: template, ...instance }]);
    }
    const seen = await body(harness);
    assert.is(program.process.exitCode, null, program.err);
    assert.is((await admin('GET /gateway/health')).status, 200);
    process.stdout.write(`  ${seen}; peak ${Math.round(memory.peakBytes / MIB)} MiB\n`);
  } catch (thrown) {
    const { exitCode, signalCode } = program.process;
    const peak = Math.round(memory.peakBytes / MIB);
    throw new Error(`exit ${exitCode} ${signalCode}, peak ${peak} MiB: ${program.err.slice(-1_500)}`, {
      cause: thrown,
    });
  } finally {
    await backend.close();
    await harness.remove();
    await memory.remove();
  }
}

type Way = 'rest' | 'rest stream' | 'mcp json' | 'mcp stream';
const WAYS: readonly Way[] = ['rest', 'rest stream', 'mcp json', 'mcp stream'];

/** Requests one answer over a new socket, and never reads more of it than its head. */
async function askAndNotRead(
  { url, wire }: McpHarness,
  credentials: Headers,
  way: Way,
): Promise<{ socket: Socket; status: number }> {
  const isMcp = way.startsWith('mcp');
  const call = { name: 'large', arguments: {} };
  const modern = new ModernClient(wire, '/mcp/large').request('tools/call', call);
  const body = isMcp ? modern.body : JSON.stringify(call);
  const accept: Readonly<Record<Way, string>> = {
    rest: 'application/json',
    'rest stream': 'text/event-stream',
    'mcp json': 'application/json, text/event-stream;q=0.1',
    'mcp stream': 'application/json, text/event-stream',
  };
  const own = { ...(isMcp ? modern.headers : POST_HEADERS), ...credentials, Accept: accept[way] };
  const headers = { ...own, 'Content-Length': String(Buffer.byteLength(body)) };
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
  socket.write(head(`POST /mcp/large${isMcp ? '' : '/tools/call'}`, headers) + body);
  const status = await new Promise<number>((resolve) => {
    socket.once('data', (answer: Buffer) => {
      socket.pause();
      resolve(Number(answer.toString('latin1', 9, 12)));
    });
    socket.once('close', () => resolve(0));
  });
  return { socket, status };
}

/** A well-behaved caller: makes one call at a time until stopped, asserts that each is served, and returns figures. */
function callGently(who: Caller): () => Promise<string> {
  const calls = repeatRequests([() => callTool(who, 'good', 'small')]);
  return async () => {
    // On a busy machine few calls are under way at a time.
    await eventually(
      async () => calls.answers,
      ({ length }) => length >= 6,
    );
    const answers = await calls.stop();
    const figures = figuresOf(answers.map(({ tookMs }) => tookMs));
    const text = `good caller: ${JSON.stringify(figures)}`;
    assert.equal([...new Set(answers.map(({ status }) => status))], [200], text);
    return text;
  };
}

/** Headers of `count` new keys. */
function keys(admin: Caller, count: number): Promise<Headers[]> {
  const made = Array.from({ length: count }, (_, number) => newKey(admin, `key ${number}`));
  return Promise.all(made.map(async (key) => (await key).headers));
}

/** Statuses of calls that backends do not finish; 0 when there was no answer in time. */
function askStalled({ url }: McpHarness, callers: readonly Headers[], calls: number): Promise<number[]> {
  const ask = async (_: unknown, turn: number) => {
    await delay(turn * 50);
    const call = caller(url, callers[turn % callers.length], patienceMs);
    const template = turn % 5 === 0 ? 'pipe' : 'stalled';
    const asked = call(`POST /mcp/${template}/tools/call`, { name: 'stalled', arguments: {} });
    return asked.then(
      ({ status }) => status,
      () => 0,
    );
  };
  return Promise.all(Array.from({ length: calls }, ask));
}

/** 80 clients of these callers whose answers are not read. */
function askUnread(harness: McpHarness, callers: readonly Headers[]) {
  const ask = async (_: unknown, turn: number) => {
    await delay(turn * 50);
    return askAndNotRead(harness, callers[turn % callers.length] ?? {}, WAYS[turn % WAYS.length] ?? 'rest');
  };
  return Promise.all(Array.from({ length: 80 }, ask));
}

/** Statuses and their counts. */
function counted(statuses: readonly number[]): string {
  const groups = Map.groupBy(statuses, String);
  return [...groups].map(([status, { length }]) => `${length} x ${status}`).join(', ');
}

withLimit('survives 60 backend answers that never end, and serves other callers', () =>
  attack(['stalled', 'pipe', 'good'], async (harness) => {
    const [good, ...attackers] = await keys(harness.admin, 2);
    const stop = callGently(caller(harness.url, good));
    const statuses = await askStalled(harness, attackers, 60);
    return `stalled backends: ${counted(statuses)}; ${await stop()}`;
  }),
);

for (const [callers, unfinished] of [
  [1, 0],
  [4, 0],
  [4, 50],
] as const) {
  const what = `80 clients of ${callers} callers that do not read and ${unfinished} unfinished answers`;
  withLimit(`survives ${what}, and serves others`, () =>
    attack(['large', 'stalled', 'pipe', 'good'], async (harness) => {
      const [good, ...attackers] = await keys(harness.admin, callers + 1);
      const stop = callGently(caller(harness.url, good));
      const stalled = askStalled(harness, attackers, unfinished);
      const unread = await askUnread(harness, attackers);
      const statuses = counted(await stalled);
      const text = await stop();
      for (const { socket } of unread) socket.destroy();
      return `${what}: ${statuses}; ${counted(unread.map(({ status }) => status))}; ${text}`;
    }),
  );
}

/** A server whose lists are short, in messages of 50 MB, and whose event streams have one character in 64 KiB. */
function openHidingBackend() {
  const padding = `"padding":"${'x'.repeat(50_000_000)}"`;
  const piece = Buffer.from(`data:x\n:${'c'.repeat(65_000)}\n`);
  return startToolServer(
    {
      hidden: (response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        const write = (left: number): void => {
          let more = left;
          while (more > 0 && response.write(piece)) more -= 1;
          if (more > 0) response.once('drain', () => write(more - 1));
          else response.end();
        };
        write(30_000);
      },
    },
    { tools: {}, prompts: {} },
    {
      'prompts/list': (response, { id }) => {
        response.writeHead(200, { 'Content-Type': 'application/json' });
        response.end(`{"jsonrpc":"2.0","id":${id},${padding},"result":{"prompts":[]}}`);
      },
    },
  );
}

withLimit('survives what servers hide around short answers', async () => {
  const memory = new MemoryLimit(1024 * MIB);
  const backend = await openHidingBackend();
  const harness = await startGuarded({ memory, env: { GATEWAY_LOG_LEVEL: 'warn' } });
  try {
    await register(harness.admin, 'hiding', [{ id: 'one', endpoint: backend.url }]);
    const statuses: unknown[] = [];
    const credentials = await newKey(harness.admin, 'attacker');
    for (let turn = 0; turn < 30; turn += 1) {
      // Lists are kept for each kind of client.
      const capabilities = { experimental: { [`of ${turn}`]: {} } };
      const client = new ModernClient(harness.wire, '/mcp/hiding', {
        capabilities,
        headers: credentials.headers,
      });
      statuses.push((await client.ask('prompts/list')).result?.prompts);
    }
    assert.equal(statuses, Array(30).fill([]));
    const call = { name: 'hidden', arguments: {} };
    const { status } = await caller(
      harness.url,
      credentials.headers,
      60_000,
    )('POST /mcp/hiding/tools/call', call);
    assert.is(status, 503);
    assert.is(harness.program.process.exitCode, null, harness.program.err);
    process.stdout.write(`  hidden bytes; peak ${Math.round(memory.peakBytes / MIB)} MiB\n`);
  } finally {
    await backend.close();
    await harness.remove();
    await memory.remove();
  }
});

test.run();

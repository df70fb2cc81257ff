// Answers that backends do not finish, and answers that clients do not read, against a gateway in 1 GiB: it stays, and a
// caller that behaves is served. Backends and clients are outside of the limit, in this process.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { type Caller, caller, newKey, tokenOf } from '../../helpers/caller.ts';
import { canLimitMemory, MemoryLimit } from '../../helpers/memory-limit.ts';
import { Program } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';

const MIB = 1024 * 1024;
const adminPassword = 'correct horse';
const test = suite('answers in 1 GiB', { timeoutMs: 240_000 });
const withLimit = test.needs(canLimitMemory, 'needs the right to make control groups (root on Linux)');

/** Begins answers of 60 MB that never end, or ends answers of 10 MB, or small ones, by the name of the tool. */
async function openBackend(): Promise<{ url: string; close: () => void }> {
  const large = Buffer.from(`{"content":[{"type":"text","text":"${'x'.repeat(10_000_000)}"}]}}`);
  const endless = Buffer.alloc(60_000_000, 'x');
  const answer = (response: ServerResponse, id: unknown, result: string): void => {
    response.setHeader('Content-Type', 'application/json');
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`);
  };
  const server = createServer(async (request, response) => {
    response.on('error', () => {});
    if (request.method !== 'POST') {
      response.writeHead(405).end();
      return;
    }
    const { id, method, params } = JSON.parse(await textOf(request));
    if (id === undefined) response.writeHead(202).end();
    else if (method === 'initialize') answer(response, id, INITIALIZED);
    else if (method === 'tools/list') answer(response, id, TOOLS);
    else if (method !== 'tools/call') answer(response, id, '{}');
    else if (params.name === 'large') {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.write(`{"jsonrpc":"2.0","id":${id},"result":`);
      response.end(large);
    } else if (params.name === 'small') answer(response, id, '{"content":[]}');
    else {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.write(`{"jsonrpc":"2.0","id":${id},"result":{"t":"`);
      response.write(endless);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${portOf(server.address())}/mcp`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const INITIALIZED = JSON.stringify({
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 'large', version: '1' },
});
const TOOLS = JSON.stringify({
  tools: ['large', 'small', 'stalled'].map((name) => ({ name, inputSchema: { type: 'object' } })),
});

/** The same over a pipe: a line of 60 MB that does not end. */
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
  if (method === 'initialize') answer(id, ${INITIALIZED});
  else if (method === 'tools/list') answer(id, ${TOOLS});
  else if (method === 'tools/call') {
    process.stdout.write('{"jsonrpc":"2.0","id":' + id + ',"result":{"t":"');
    flood(60e6);
  }
  else answer(id, {});
});`;

interface Harness {
  readonly admin: Caller;
  readonly url: string;
}

/** A gateway with accounts in 1 GiB, with an instance at each template. */
async function attack(
  templates: readonly string[],
  body: (harness: Harness) => Promise<string>,
): Promise<void> {
  const memory = new MemoryLimit(1024 * MIB);
  const backend = await openBackend();
  const env = {
    GATEWAY_AUTH_ENABLED: 'true',
    GATEWAY_ADMIN_PASSWORD: adminPassword,
    GATEWAY_LOG_LEVEL: 'warn',
  };
  const program = new Program(['gateway', 'start', '--port', '0'], { memory, env });
  try {
    const url = await program.url();
    const admin = caller(url, await tokenOf(url, 'admin', adminPassword));
    for (const template_name of templates) {
      const isProgram = template_name.startsWith('pipe');
      const instance = isProgram
        ? { command: process.execPath, args: ['-e', STALLED_PROGRAM] }
        : { endpoint: backend.url };
      const made = await admin('POST /gateway/register?wait=20', { template_name, instance });
      assert.is(made.status, 201, JSON.stringify(made.body));
    }
    const seen = await body({ admin, url });
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
    backend.close();
    await program.remove();
    await memory.remove();
  }
}

type Way = 'rest' | 'rest stream' | 'mcp json' | 'mcp stream';
const WAYS: readonly Way[] = ['rest', 'rest stream', 'mcp json', 'mcp stream'];

/** Asks over a socket of its own for one answer, and never reads more of it than its head. */
async function askAndNotRead(
  url: string,
  headers: Readonly<Record<string, string>>,
  way: Way,
): Promise<{ socket: Socket; status: number; isCut: () => boolean }> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  let isCut = false;
  socket.on('error', () => {});
  socket.on('close', () => {
    isCut = true;
  });
  const isMcp = way.startsWith('mcp');
  const call = { name: 'large', arguments: {} };
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'idle', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const body = JSON.stringify(
    isMcp ? { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...call, _meta: meta } } : call,
  );
  const all: Record<string, string> = {
    Host: `${hostname}:${port}`,
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    Accept:
      way === 'rest'
        ? 'application/json'
        : isMcp
          ? 'application/json, text/event-stream'
          : 'text/event-stream',
    ...(isMcp
      ? { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'large' }
      : {}),
    ...headers,
  };
  if (way === 'mcp json') all.Accept = 'application/json, text/event-stream;q=0.1';
  const path = isMcp ? '/mcp/large' : '/mcp/large/tools/call';
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
  const status = await new Promise<number>((resolve) => {
    socket.once('data', (head: Buffer) => {
      socket.pause();
      resolve(Number(head.toString('latin1', 9, 12)));
    });
    socket.once('close', () => resolve(0));
  });
  return { socket, status, isCut: () => isCut };
}

/** A caller that behaves: calls one after the other until stopped. */
function callGently(
  call: Caller,
  template: string,
): () => Promise<{ served: number; failed: number; text: string }> {
  let isOver = false;
  const times: number[] = [];
  const failures: unknown[] = [];
  const run = (async () => {
    while (!isOver) {
      try {
        const answer = await call(`POST /mcp/${template}/tools/call`, { name: 'small', arguments: {} });
        if (answer.status === 200) times.push(answer.tookMs);
        else failures.push(answer.body);
      } catch (thrown) {
        failures.push(String(thrown));
      }
      await delay(20);
    }
  })();
  return async () => {
    isOver = true;
    await run;
    times.sort((one, other) => one - other);
    const at = (part: number): number =>
      Math.round(times[Math.floor(times.length * part)] ?? times.at(-1) ?? 0);
    const text = `good caller: ${times.length} served, ${failures.length} failed, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`;
    return { served: times.length, failed: failures.length, text };
  };
}

async function keys(admin: Caller, count: number): Promise<Readonly<Record<string, string>>[]> {
  const made: Readonly<Record<string, string>>[] = [];
  for (let number = 0; number < count; number += 1) made.push((await newKey(admin, `key ${number}`)).headers);
  return made;
}

/** Of a call that is not finished; 0 when there was no answer in time. */
async function statusOf(call: Caller, template: string): Promise<number> {
  try {
    return (await call(`POST /mcp/${template}/tools/call`, { name: 'stalled', arguments: {} })).status;
  } catch {
    return 0; // counted with the others
  }
}

/** Statuses and how often each was. */
function counted(statuses: readonly number[]): string {
  const groups = Map.groupBy(statuses, String);
  return [...groups].map(([status, { length }]) => `${length} x ${status}`).join(', ');
}

withLimit('which 60 backends do not finish do not end the gateway, nor calls of others', async () => {
  await attack(['stalled', 'pipe', 'good'], async ({ admin, url }) => {
    const [attacker = {}, good = {}] = await keys(admin, 2);
    const stop = callGently(caller(url, good), 'good');
    const call = caller(url, attacker);
    const statuses = await Promise.all(
      Array.from({ length: 60 }, async (_, turn) => {
        await delay(turn * 50);
        const template = turn % 3 === 0 ? 'pipe' : 'stalled';
        return statusOf(call, template);
      }),
    );
    const { failed, served, text } = await stop();
    assert.ok(served > 5 && failed === 0, text);
    return `stalled backends: ${counted(statuses)}; ${text}`;
  });
});

for (const callers of [1, 4]) {
  withLimit(`which 80 clients of ${callers} callers do not read do not end the gateway`, async () => {
    await attack(['large', 'good'], async ({ admin, url }) => {
      const [good = {}, ...attackers] = await keys(admin, callers + 1);
      const stop = callGently(caller(url, good), 'good');
      const asked = await Promise.all(
        Array.from({ length: 80 }, async (_, turn) => {
          await delay(turn * 60);
          return askAndNotRead(url, attackers[turn % callers] ?? {}, WAYS[turn % WAYS.length] ?? 'rest');
        }),
      );
      const held = asked.filter(({ status, isCut }) => status === 200 && !isCut()).length;
      const { failed, served, text } = await stop();
      for (const { socket } of asked) socket.destroy();
      assert.ok(served > 5 && failed === 0, text);
      return `unread, ${callers} callers: ${counted(asked.map(({ status }) => status))}, ${held} still held; ${text}`;
    });
  });
}

withLimit('which nobody finishes or reads, all at once, do not end the gateway', async () => {
  await attack(['large', 'stalled', 'pipe', 'good'], async ({ admin, url }) => {
    const [good = {}, ...attackers] = await keys(admin, 5);
    const stop = callGently(caller(url, good), 'good');
    const stalled = Array.from({ length: 50 }, async (_, turn) => {
      await delay(turn * 60);
      const template = turn % 5 === 0 ? 'pipe' : 'stalled';
      const call = caller(url, attackers[turn % 4]);
      return statusOf(call, template);
    });
    const unread = await Promise.all(
      Array.from({ length: 80 }, async (_, turn) => {
        await delay(turn * 40);
        return askAndNotRead(url, attackers[turn % 4] ?? {}, WAYS[turn % WAYS.length] ?? 'rest');
      }),
    );
    const statuses = await Promise.all(stalled);
    const { failed, served, text } = await stop();
    for (const { socket } of unread) socket.destroy();
    assert.ok(served > 5 && failed === 0, text);
    return `both: stalled ${counted(statuses)}, unread ${counted(unread.map(({ status }) => status))}; ${text}`;
  });
});

test.run();

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

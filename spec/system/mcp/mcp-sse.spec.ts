// Clients of HTTP+SSE at a gateway with accounts and real programs: a program of their sessions is killed, and the gateway
// stops, is killed and is restarted. The client is the official SDK's.

import { setTimeout as delay } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import * as assert from 'uvu/assert';
import { type Caller, field, newKey } from '../../helpers/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/mcp-program.ts';
import { canFindProcesses, NO_PROCESSES } from '../../helpers/processes.ts';
import { suite } from '../../helpers/suite.ts';
import { fixture } from '../../transports/stdio/open-stdio.ts';

const test = suite('journey: HTTP+SSE', { timeoutMs: 90_000 });
const needsProcesses = test.needs(canFindProcesses, NO_PROCESSES);

/** A gateway with accounts. */
interface Harness extends McpHarness {
  readonly key: Readonly<Record<string, string>>;
}

const folder = folderOfEach(test);
const harnesses: Harness[] = [];
const clients: SseClient[] = [];
test.after.each(async () => {
  await Promise.all(clients.splice(0).map(({ client }) => client.close()));
  for (const harness of harnesses.splice(0)) await harness.remove();
});

needsProcesses('a killed program ends the stream of its session, and the next session works', async () => {
  const harness = await start();
  await registerPair(harness.admin);

  const actor = await connect(harness);
  const acting = actor.failureOf('count', { ms: 60_000 });
  await inFlight(harness.admin, 1);
  await actor.killProgram();
  assert.match(await acting, 'The backend is unavailable.');
  await actor.streamEnds();
  assert.match(await actor.failureOf('name'), /HTTP 4(04.*Session not found|00.*not initialized)/);
  assert.is((await actor.postAgain()).status, 404);
  assert.match(await (await connect(harness)).call('name'), /^(one|two)$/);
});

needsProcesses('a stop answers calls, then ends streams, which the next gateway answers 404', async () => {
  const harness = await start();
  await registerPair(harness.admin);
  const [busy, idle] = [await connect(harness), await connect(harness, '/mcp/sse')];
  const seen: string[] = [];
  const answered = busy.call('sleep', { ms: 700 }).then((text) => seen.push(text));
  void busy.streamEnds().then(() => seen.push('the stream ended'));
  await inFlight(harness.admin, 1);
  harness.program.signal('SIGTERM');
  await Promise.all([answered, busy.streamEnds(), idle.streamEnds()]);
  assert.equal(seen, ['slept 700', 'the stream ended']);
  assert.equal(await harness.program.end(), { code: 0, signal: null });
  assert.equal(await harness.program.survivors(), []);

  const next = await start();
  for (const client of [busy, idle]) {
    const { status, text } = await client.postAgain(next.url);
    assert.equal([status, Object(JSON.parse(text).error).code], [404, -32001], text);
  }
  const again = await connect(next);
  assert.match(await again.call('name'), /^(one|two)$/);
  next.program.signal('SIGKILL');
  await again.streamEnds();
  assert.match(await again.failureOf('name'), /fetch failed|other side closed/);
  assert.equal(await next.program.survivors(), []);
});

test.run();

async function start(): Promise<Harness> {
  const env = { GATEWAY_DATABASE_URL: `sqlite:///${folder()}/gateway.db` };
  const guarded = await startGuarded({ env });
  const { headers: key } = await newKey(guarded.admin, `key-${harnesses.length}`);
  const started = { ...guarded, key };
  harnesses.push(started);
  return started;
}

function registerPair(admin: Caller): Promise<void> {
  const instances = ['one', 'two'].map((id) => {
    const { command, args } = fixture(`--name=${id}`, '--era=legacy');
    return { id, command, args: [...args] };
  });
  return register(admin, 'pair', instances, { strategy: 'round_robin' });
}

async function inFlight(admin: Caller, wanted: number): Promise<void> {
  await becomes(async () => field(await admin('GET /gateway/stats'), 'active_connections'), wanted);
}

/** The SDK's client, with access to its transport. */
interface SseClient {
  readonly client: Client;
  /** The text of a tool's result. */
  call(name: string, args?: object): Promise<string>;
  /** The message of the error of a call that has to fail. */
  failureOf(name: string, args?: object): Promise<string>;
  /** Kills the program of its session. */
  killProgram(): Promise<void>;
  streamEnds(): Promise<void>;
  /** Posts to the messages path of its first stream. Default: at its own gateway. */
  postAgain(url?: string): Promise<{ readonly status: number; readonly text: string }>;
}

async function connect(harness: Harness, path = '/mcp/pair/sse'): Promise<SseClient> {
  const posted: URL[] = [];
  const ended = Promise.withResolvers<void>();
  const transport = new SSEClientTransport(new URL(path, harness.url), {
    requestInit: { headers: harness.key },
    fetch: (url, init) => {
      if (init?.method === 'POST') posted.push(new URL(url));
      return fetch(url, init);
    },
  });
  const client = new Client({ name: 'old', version: '1' });
  await client.connect(transport);
  const known = client.onerror;
  client.onerror = (error) => {
    known?.(error);
    if (error.name === 'SseError' || error.constructor.name === 'SseError') ended.resolve();
  };
  const call = async (name: string, args?: object): Promise<string> => {
    const { content } = await client.callTool({ name, arguments: { ...args } });
    return Array.isArray(content) ? String(content[0]?.text) : '';
  };
  const made: SseClient = {
    client,
    call,
    failureOf: async (name, args) => {
      const outcome = await call(name, args).then(
        (text) => `answered: ${text}`,
        (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
      );
      assert.instance(outcome, Error, String(outcome));
      return String(Object(outcome).message) + String(Object(Object(outcome).cause).message ?? '');
    },
    killProgram: async () => void process.kill(Number(await call('pid')), 'SIGKILL'),
    streamEnds: async () => {
      await Promise.race([ended.promise, delay(30_000, undefined, { ref: false }).then(giveUp)]);
    },
    postAgain: async (url = harness.url) => {
      const [first] = posted;
      assert.ok(first);
      const response = await fetch(new URL(first.pathname + first.search, url), {
        method: 'POST',
        headers: { ...harness.key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 99, method: 'ping' }),
      });
      return { status: response.status, text: await response.text() };
    },
  };
  clients.push(made);
  return made;
}

function giveUp(): never {
  throw new Error('the stream did not end');
}

// A client of HTTP+SSE at a gateway with accounts and real programs: the program of its session is killed. The client is the
// official SDK's. The end of the gateway: spec/http/mcp-sse.spec.ts and lifecycle.spec.ts.

import { setTimeout as delay } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import * as assert from 'uvu/assert';
import { type Caller, field, newKey } from '../../helpers/caller.ts';
import { becomes } from '../../helpers/eventually.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/mcp-program.ts';
import { canFindProcesses, NO_PROCESSES } from '../../helpers/processes.ts';
import { suite } from '../../helpers/suite.ts';
import { fixture } from '../../transports/stdio/open-stdio.ts';

const test = suite('journey: HTTP+SSE', { timeoutMs: 90_000 });
const needsProcesses = test.needs(canFindProcesses, NO_PROCESSES);

let harness: McpHarness;
let key: Readonly<Record<string, string>>;
const clients: SseClient[] = [];
test.before(async () => {
  harness = await startGuarded();
  ({ headers: key } = await newKey(harness.admin, 'client'));
});
test.after(async () => {
  await Promise.all(clients.map(({ client }) => client.close()));
  await harness.remove();
});

needsProcesses('a killed program ends the stream of its session, and the next session works', async () => {
  await registerPair(harness.admin);

  const actor = await connect();
  const acting = actor.failureOf('count', { ms: 60_000 });
  await inFlight(harness.admin, 1);
  await actor.killProgram();
  assert.match(await acting, 'The backend is unavailable.');
  await actor.streamEnds();
  assert.match(await actor.failureOf('name'), /HTTP 4(04.*Session not found|00.*not initialized)/);
  assert.is(await actor.postAgain(), 404);
  assert.match(await (await connect()).call('name'), /^(one|two)$/);
});

test.run();

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
  /** The status of a message to the path of its first stream. */
  postAgain(): Promise<number>;
}

async function connect(): Promise<SseClient> {
  const posted: URL[] = [];
  const ended = Promise.withResolvers<void>();
  const transport = new SSEClientTransport(new URL('/mcp/pair/sse', harness.url), {
    requestInit: { headers: key },
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
    postAgain: async () => {
      const [first] = posted;
      assert.ok(first);
      const response = await fetch(new URL(first.pathname + first.search, harness.url), {
        method: 'POST',
        headers: { ...key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 99, method: 'ping' }),
      });
      await response.arrayBuffer();
      return response.status;
    },
  };
  clients.push(made);
  return made;
}

function giveUp(): never {
  throw new Error('the stream did not end');
}

// JSON that is kept, inside 1 GiB: capabilities of sessions and of subscriptions cost more memory as values than as bytes. The gateway
// bounds them, survives, and serves other callers.

import * as assert from 'uvu/assert';
import { newKey } from '../../helpers/clients/caller.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { canLimitMemory, MemoryLimit } from '../../helpers/programs/memory-limit.ts';
import { suite } from '../../helpers/suite.ts';
import type { RawServer } from '../../transports/raw-server.ts';
import { MIB, nothing, othersAreServed, startToolServer } from './attack.ts';

const test = suite('kept JSON in 1 GiB', { timeoutMs: 180_000 });
const withLimit = test.needs(canLimitMemory, 'needs the right to make control groups (root on Linux)');

type Credentials = Readonly<Record<string, string>>;

const CALLERS = 6;
const REQUESTS_OF_ONE = 600;
/** Requests of one caller that are under way at the same time. */
const CONCURRENT = 5;

let backend: RawServer;
let memory: MemoryLimit;
let harness: McpHarness;
let other: Credentials;
if (canLimitMemory) {
  test.before(async () => {
    backend = await startToolServer({ fast: nothing }, { tools: { listChanged: true } });
    memory = new MemoryLimit(1024 * MIB);
    harness = await startGuarded({ memory });
    await register(harness.admin, 'demo', [{ id: 'one', endpoint: backend.url }]);
    other = await key();
  });
  test.after(async () => {
    await harness.remove();
    await memory.remove();
    await backend.close();
  });
}

async function key(): Promise<Credentials> {
  return (await newKey(harness.admin, 'spec')).headers;
}

/** Different in each request, so that none can be shared. */
const capabilities = (values: number, index: number) => ({
  experimental: { [`k${index}`]: Array(values).fill({}) },
});

const client = { name: 'attacker', version: '1' };
const initialize = (values: number, index: number) => ({
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: capabilities(values, index),
    clientInfo: client,
  },
});
const MODERN = '2026-07-28';
const listen = (values: number, index: number) => ({
  method: 'subscriptions/listen',
  params: {
    notifications: { toolsListChanged: true },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientCapabilities': capabilities(values, index),
      'io.modelcontextprotocol/clientInfo': client,
    },
  },
});

const ATTACKS = [
  ['subscriptions/listen with 10,000 values', listen, 10_000, '-32602'],
  ['subscriptions/listen with 900 values', listen, 900, 'QUEUE_FULL'],
  ['initialize with 10,000 values', initialize, 10_000, '-32602'],
  ['initialize with 900 values', initialize, 900, 'SESSION_LIMIT'],
] as const;
for (const [name, message, values, refusal] of ATTACKS) {
  withLimit(`${name} is bounded`, () =>
    othersAreServed(harness, other, name, async () => {
      const streams = new AbortController();
      const answers = new Map<string, number>();
      const attackers = Array.from({ length: CALLERS }, async (_, caller) => {
        const headers = await key();
        let index = 0;
        const repeat = async (): Promise<void> => {
          while (index < REQUESTS_OF_ONE) {
            index += 1;
            const sent = message(values, caller * REQUESTS_OF_ONE + index);
            const answer = await send(sent, headers, streams.signal);
            answers.set(answer, (answers.get(answer) ?? 0) + 1);
          }
        };
        await Promise.all(Array.from({ length: CONCURRENT }, repeat));
      });
      await Promise.all(attackers);
      streams.abort();
      process.stdout.write(`  the attackers were answered ${JSON.stringify(Object.fromEntries(answers))}\n`);
      assert.ok((answers.get(refusal) ?? 0) > 0, refusal);
      assert.is(answers.has('opened'), values < 1_000);
    }),
  );
}

/** Sends one message; a stream stays open until the signal aborts. Resolves with the code of an error, else with `opened`. */
async function send(
  message: { readonly method: string },
  headers: Credentials,
  signal: AbortSignal,
): Promise<string> {
  const isModern = message.method !== 'initialize';
  const modern = { 'mcp-protocol-version': MODERN, 'mcp-method': message.method };
  const response = await fetch(`${harness.url}/mcp/demo`, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(isModern ? modern : {}),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
    signal,
  });
  if (isModern && response.ok && response.headers.get('content-type')?.includes('event-stream') === true)
    return 'opened';
  const [, json = ''] = /(\{.*\})/.exec(await response.text()) ?? [];
  const { error } = JSON.parse(json);
  return error === undefined ? 'opened' : String(error.data?.error_code ?? error.code);
}

test.run();

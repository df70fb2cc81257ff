// Request bodies of one caller, inside 1 GiB: the gateway survives large, slow or many bodies and bodies full of values, and
// serves other callers.

import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { newKey } from '../../helpers/clients/caller.ts';
import { head } from '../../helpers/clients/raw-http.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { canLimitMemory, MemoryLimit } from '../../helpers/programs/memory-limit.ts';
import { suite } from '../../helpers/suite.ts';
import type { RawServer } from '../../transports/raw-server.ts';
import { MIB, nothing, othersAreServed, startToolServer } from './attack.ts';
import { type Flood, flood } from './flood.ts';
import { holdUploads } from './uploads.ts';

const ATTACK_MS = 4_000;
/** How long a call of the attacker holds its body. */
const SLOW_MS = 3_000;
// An attack sends up to 400 MB, which the thread of the attacker takes long for on a busy machine.
const test = suite('request bodies in 1 GiB', { timeoutMs: 120_000 });
const withLimit = test.needs(canLimitMemory, 'needs the right to make control groups (root on Linux)');

let backend: RawServer;
let memory: MemoryLimit;
let harness: McpHarness;
let other: Readonly<Record<string, string>>;
if (canLimitMemory) {
  test.before(async () => {
    backend = await startToolServer({
      fast: nothing,
      slow: async (...asked) => {
        await sleep(SLOW_MS);
        nothing(...asked);
      },
    });
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

async function key(): Promise<Readonly<Record<string, string>>> {
  return (await newKey(harness.admin, 'spec')).headers;
}

/** Repeated calls of `slow` with these arguments by a new caller; whether some of them are served. */
const FLOODS: Readonly<
  Record<string, readonly [connections: number, args: Flood['body'], isServed?: boolean]>
> = {
  '101 calls with 1.3 million empty objects are bounded': [101, ['{"x":[', '{}', 1_300_000, ']}'], true],
  '101 calls with 99,000 empty objects are bounded': [101, ['{"x":[', '{}', 99_000, ']}'], true],
  '101 calls with 3.9 MB of text are bounded': [101, ['{"x":"', 'xxx', 970_000, '"}']],
  '280,000 different JSON keys per body do not delay other callers': [10, ['{', '"k#":1', 280_000, '}']],
  '49,000 different JSON keys per body do not delay other callers': [10, ['{', '"k#":1', 49_000, '}']],
};
for (const [name, [connections, [first, repeated, times, last], isServed]] of Object.entries(FLOODS)) {
  withLimit(name, () =>
    othersAreServed(harness, other, name, async () => {
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

withLimit('100 uploads that stay incomplete are bounded in memory', () =>
  othersAreServed(harness, other, '100 uploads held', async () => {
    const types = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
    await holdUploads({
      port: Number(new URL(harness.url).port),
      head: head('POST /mcp/demo', { ...(await key()), ...types, 'Content-Length': '4000000' }),
      ...{ bodyBytes: 3_900_000, connections: 100, lastsMs: ATTACK_MS },
    });
  }),
);

test.run();

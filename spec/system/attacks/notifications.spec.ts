// Notifications of one caller for programs that do not read them, inside 1 GiB: the gateway survives, refuses what it cannot hold with
// 429, and serves other callers.

import * as assert from 'uvu/assert';
import { caller, callTool, newKey, repeatRequests } from '../../helpers/clients/caller.ts';
import { LegacyClient } from '../../helpers/clients/mcp-client.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { canLimitMemory, MemoryLimit } from '../../helpers/programs/memory-limit.ts';
import { suite } from '../../helpers/suite.ts';
import type { RawServer } from '../../transports/raw-server.ts';
import { figuresOf, MIB, nothing, startToolServer } from './attack.ts';

const test = suite('notifications in 1 GiB', { timeoutMs: 120_000 });
const withLimit = test.needs(canLimitMemory, 'needs the right to make control groups (root on Linux)');

const SESSIONS = 16;
/** Of small messages, which the rate limit does not count. */
const ROUNDS = 100;
const AT_ONCE = 15;
const TEXT = 'x'.repeat(60_000);
/** Shakes hands, and reads nothing more once a client has a session. */
const DEAF = `
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    const answer = (rest) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...rest }) + '\\n');
    const { protocolVersion, capabilities } = params ?? {};
    if (method === 'initialize') {
      answer({ result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'deaf', version: '1' } } });
      if (capabilities.sampling) process.stdin.pause();
    } else if (method === 'tools/list') answer({ result: { tools: [] } });
    else if (id !== undefined) answer(method === 'ping' ? { result: {} } : { error: { code: -32601, message: 'no' } });
  });
  setInterval(() => {}, 1e6);`;

let backend: RawServer;
let memory: MemoryLimit;
let harness: McpHarness;
if (canLimitMemory) {
  test.before(async () => {
    backend = await startToolServer({ fast: nothing });
    memory = new MemoryLimit(1024 * MIB);
    harness = await startGuarded({ memory });
    await register(harness.admin, 'demo', [{ id: 'one', endpoint: backend.url }]);
    await register(harness.admin, 'deaf', [{ id: 'one', command: process.execPath, args: ['-e', DEAF] }]);
  });
  test.after(async () => {
    await harness.remove();
    await memory.remove();
    await backend.close();
  });
}

withLimit('1.4 GB for programs that read nothing are refused, and others are served', async () => {
  const { headers } = await newKey(harness.admin, 'attacker');
  const options = { headers, capabilities: { sampling: {} } };
  const clients: LegacyClient[] = [];
  while (clients.length < SESSIONS) clients.push(await LegacyClient.open(harness.wire, '/mcp/deaf', options));
  const other = caller(harness.url, (await newKey(harness.admin, 'other')).headers);
  const watching = repeatRequests([() => callTool(other, 'demo', 'fast')]);
  const statuses = new Map<number, number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const sent = Array.from({ length: AT_ONCE }, () =>
      clients.map((client) => client.notify('notifications/custom', { text: TEXT })),
    ).flat();
    for (const { status } of await Promise.all(sent)) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  const answers = await watching.stop();
  const figures = figuresOf(answers.map(({ tookMs }) => tookMs));
  const peak = Math.round(memory.peakBytes / MIB);
  process.stdout.write(
    `${JSON.stringify({ statuses: Object.fromEntries(statuses), others: figures, peakMib: peak })}\n`,
  );
  assert.equal([...statuses.keys()].toSorted(), [202, 429]);
  assert.ok(Number(statuses.get(202)) < 1_000, `${statuses.get(202)} were taken`);
  assert.equal([...new Set(answers.map(({ status }) => status))], [200]);
});

test.run();

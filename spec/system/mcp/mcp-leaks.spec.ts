// Two thousand sessions that are opened and abandoned in several ways: after they expired the gateway holds as much as before.
// The baseline is its footprint after the first sessions, since much is created once. Clients with an open stream are not
// tested: their sessions stay for two minutes, which is too long for a spec.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { everythingProgram } from '../../fixtures/everything-server.ts';
import { LegacyClient, requestText } from '../../helpers/clients/mcp-client.ts';
import { Wire } from '../../helpers/clients/mcp-wire.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type McpHarness, register, startHarness } from '../../helpers/programs/mcp-program.ts';
import { canFindProcesses, NO_PROCESSES } from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';
import { type FixtureProcess, startFixture } from '../../official-suites/children.ts';
import { footprintOf, isBack, TELLS_FOOTPRINT } from './mcp-footprint.ts';

const idleSeconds = 15; // longer than opening most of them takes on a busy machine
const warmUp = 800;
const abandoned = 2_000;
/** One session in so many has a dedicated process. */
const isolatedEvery = 100;
const atOnce = 16;
/** The tolerated growth. */
const part = 0.05;
/** Longest time after the last session should have expired: streams are kept for a minute, and looked at every 10 s. */
const settleMs = 60_000;

const test = suite('journey: abandoned sessions', { timeoutMs: 180_000 });
const needsProcesses = test.needs(canFindProcesses, NO_PROCESSES);

let harness: McpHarness;
let far: FixtureProcess;
let mostProcesses = 0;
test.before(async () => {
  far = await startFixture({ name: 'far', era: 'legacy' });
  const env = { GATEWAY_SESSION_IDLE_SECONDS: String(idleSeconds), NODE_OPTIONS: TELLS_FOOTPRINT };
  harness = await startHarness({ env });
  await register(harness.admin, 'far', [{ id: 'far', endpoint: far.url }]);
  await register(harness.admin, 'near', [{ id: 'near', ...everythingProgram({ era: 'legacy' }) }]);
});
test.after(async () => {
  await harness.remove();
  await far.stop();
});

needsProcesses(`${abandoned} of them leave no memory, files or processes once expired`, async () => {
  const footprint = footprintOf(harness.program);
  await abandon(warmUp);
  await delay(idleSeconds * 1_000 + 4_000);
  const before = await footprint();

  const ids = await abandon(abandoned);
  const during = await footprint();
  assert.ok(during.heapBytes > before.heapBytes, 'there was something to let go of');
  assert.ok(mostProcesses > before.processes);
  await delay(idleSeconds * 1_000);
  const after = await eventually(
    // Rarely, since measuring makes garbage, too.
    () => delay(1_000).then(footprint),
    (now) => isBack(now, before, part),
    settleMs,
  );
  assert.ok(isBack(after, before, part), `before ${JSON.stringify(before)}, after ${JSON.stringify(after)}`);
  assert.equal(await stillThere(ids), []);
});

test.run();

/** Opens that many sessions and leaves them; their ids, by path. */
async function abandon(count: number): Promise<[path: string, id: string][]> {
  // A separate wire, whose sockets do not count for the gateway.
  const wire = new Wire(harness.url);
  const sessions: [string, string][] = [];
  let opened = 0;
  const openMany = async (): Promise<void> => {
    for (let index = opened++; index < count; index = opened++) {
      const path = index % 2 === 0 ? '/mcp/near' : '/mcp/far';
      const isIsolated = index % isolatedEvery === 0;
      const options = isIsolated ? { capabilities: { elicitation: {} } } : {};
      const client = await LegacyClient.open(wire, path, options);
      sessions.push([path, client.sessionId]);
      if (isIsolated) mostProcesses = Math.max(mostProcesses, harness.program.descendants().length);
      else await use(client, index);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, openMany));
  wire.close();
  return sessions;
}

/** Possible requests of a client before it abandons its session. */
async function use(client: LegacyClient, index: number): Promise<void> {
  const manner = index % 6;
  if (manner === 1) await client.call('test_simple_text');
  if (manner === 2) await client.ask('tools/list');
  if (manner === 3) await client.ask('resources/subscribe', { uri: 'test://watched-resource' });
  if (manner === 4) await leaveInTheMiddle(client);
  // Its stream is kept for a while after it was read.
  if (manner === 5) await client.call('test_tool_with_progress', {}, { meta: { progressToken: 1 } });
}

/** Sends a call and disconnects before the answer, which cancels nothing in the legacy era. */
async function leaveInTheMiddle({ wire, path, headers }: LegacyClient): Promise<void> {
  const params = { name: 'test_tool_with_progress', arguments: {}, _meta: { progressToken: 1 } };
  const call = await wire.stream(path, { headers, body: requestText(1, 'tools/call', params) });
  call.close();
}

/** The sessions that are answered with a status other than 404. */
async function stillThere(sessions: readonly (readonly [string, string])[]): Promise<string[]> {
  const wire = new Wire(harness.url);
  const found: string[] = [];
  const left = [...sessions];
  const askMany = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const [path, id] = next;
      const { status } = await wire.exchange(path, { method: 'DELETE', headers: { 'Mcp-Session-Id': id } });
      if (status !== 404) found.push(`${status} ${path}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, askMany));
  wire.close();
  return found;
}

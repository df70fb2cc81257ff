// What an operator sees of MCP clients: two of them have a process each, and one is killed. The log says whose it was and
// why, the numbers follow, and no id of a session is anywhere.

import * as assert from 'uvu/assert';
import { sessionFingerprint } from '../../../src/actors/session-fingerprint.ts';
import { everythingProgram } from '../../fixtures/everything-server.ts';
import type { Json } from '../../fixtures/wire.ts';
import { eventually } from '../../helpers/gateway-client.ts';
import { LegacyClient, textOf } from '../../helpers/mcp-client.ts';
import { type McpHarness, register, startHarness } from '../../helpers/mcp-program.ts';
import { canFindDescendants } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: what is seen of MCP clients', { timeoutMs: 60_000 });
const needsProcesses = test.needs(canFindDescendants, 'processes are found through /proc, which is Linux');

needsProcesses('a process of a client dies', async () => {
  const harness = await startHarness({ env: { GATEWAY_LOG_LEVEL: 'debug' } });
  try {
    const settings = { session: 'isolated', session_failover: 'never' };
    await register(harness.admin, 'own', [{ id: 'one', ...everythingProgram({ name: 'one' }) }], settings);
    const [lucky, unlucky] = [await open(harness), await open(harness)];
    const { pid } = JSON.parse(textOf(await unlucky.call('test_instance')));
    assert.equal(await numbers(harness), {
      sessions: { open: 2, parked: 0, max: 10_000, opened: 2, ended: 0, lost: 0, moved: 0 },
      own_processes: { running: 2, started: 2, lost: 0 },
    });
    process.kill(pid, 'SIGKILL');
    const died = await line(harness, ({ msg }) => msg === 'dedicated process of a client exited');
    assert.equal(
      [died.level, died.template, died.instance_id, died.principal],
      [40, 'own', 'one', 'anonymous'],
    );
    assert.match(String(died.reason), 'SIGKILL');
    const { status } = await unlucky.call('test_instance');
    assert.is(status, 404);
    const session = sessionFingerprint(unlucky.sessionId);
    const lost = await line(harness, ({ msg }) => msg === 'session ended: no instance can continue it');
    assert.equal([lost.level, lost.session, lost.reason], [30, session, 'its instance is gone']);
    const refused = await line(harness, (one) => one.rpc_error === -32_001 && one.session === session);
    assert.equal([refused.rpc_method, refused.status, refused.template], ['tools/call', 404, 'own']);
    assert.equal(await numbers(harness), {
      sessions: { open: 1, parked: 0, max: 10_000, opened: 2, ended: 1, lost: 1, moved: 0 },
      own_processes: { running: 1, started: 2, lost: 1 },
    });
    await shown(harness);
    await lucky.close();
    await line(harness, ({ msg, reason }) => msg === 'upstream.ended' && reason === 'closed by the gateway');
    for (const { sessionId } of [lucky, unlucky]) {
      assert.not.ok((harness.program.err + harness.program.out).includes(sessionId.slice(0, 12)));
    }
  } finally {
    await harness.remove();
  }
});

test.run();

function open({ wire }: McpHarness): Promise<LegacyClient> {
  return LegacyClient.open(wire, '/mcp/own');
}

async function numbers({ admin }: McpHarness): Promise<Json> {
  const { sessions, own_processes } = Object((await admin('GET /gateway/stats')).body);
  return { sessions, own_processes };
}

/** The same on the command line. */
async function shown({ program }: McpHarness): Promise<void> {
  const status = await program.run('gateway', 'status');
  assert.match(status.out, /^sessions +1 of at most 10000, 0 parked, 0 moved, 1 lost$/m);
  assert.match(status.out, /^own processes +1 running, 1 lost$/m);
  const list = await program.run('gateway', 'list');
  assert.match(list.out, /^own +one +stdio +healthy +1 +0 +1 +1 /m);
}

/** The first line of the log that is meant; waits for it. */
async function line({ program }: McpHarness, isMeant: (line: Json) => boolean): Promise<Json> {
  const look = async () => {
    const lines = program.err.split('\n').filter((text) => text.startsWith('{') && text.endsWith('}'));
    return lines.map((text): Json => JSON.parse(text)).find(isMeant);
  };
  const found = await eventually(look, (one) => one !== undefined);
  if (found === undefined) throw new Error(`there is no such line:\n${program.err}`);
  return found;
}

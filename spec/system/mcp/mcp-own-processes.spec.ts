// Processes of single clients that outlived the shared one, and then the gateway ends, by itself or killed: nothing is left.

import { writeFile } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { folderOfEach } from '../../helpers/folder.ts';
import { eventually } from '../../helpers/gateway-client.ts';
import { isRunning } from '../../helpers/is-running.ts';
import { LegacyClient, textOf } from '../../helpers/mcp-client.ts';
import { type McpHarness, register, startHarness } from '../../helpers/mcp-program.ts';
import { canFindDescendants } from '../../helpers/program.ts';
import { suite } from '../../helpers/suite.ts';
import { fixture } from '../../transports/stdio/open-stdio.ts';

const test = suite('journey: processes of single clients', { timeoutMs: 60_000 });
const folder = folderOfEach(test);
const needsProcesses = test.needs(canFindDescendants, 'processes are found through /proc, which is Linux');

for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
  needsProcesses(`${signal} to the gateway ends those that outlived the shared process`, async () => {
    const harness = await startHarness();
    try {
      const bar = folder('bar');
      const { command, args } = fixture(`--refuse-while=${bar}`);
      await register(harness.admin, 't', [{ id: 'a', command, args: [...args] }]);
      const clients = [await open(harness), await open(harness)];
      const own = await Promise.all(clients.map(pidOf));
      const shared = await sharedPid(harness);

      await writeFile(bar, '');
      process.kill(shared, 'SIGKILL');
      await harness.program.complains(/instance will be restarted/);
      assert.equal(await Promise.all(clients.map(pidOf)), own);

      harness.program.signal(signal);
      await harness.program.end(20_000);
      assert.equal(await harness.program.survivors(), []);
      // One that is just dying has no environment to be found by, and runs for a moment still.
      const left = async () => own.filter(isRunning);
      assert.equal(await eventually(left, ({ length }) => length === 0, 20_000), []);
    } finally {
      await harness.remove();
    }
  });
}

test.run();

/** A client that has a process of its own. */
function open({ wire }: McpHarness): Promise<LegacyClient> {
  return LegacyClient.open(wire, '/mcp/t', { capabilities: { elicitation: {} } });
}

async function pidOf(client: LegacyClient): Promise<number> {
  const pid = Number(textOf(await client.call('pid')));
  assert.ok(pid > 0, 'its process answers');
  return pid;
}

async function sharedPid({ admin }: McpHarness): Promise<number> {
  const { body } = await admin('GET /gateway/registry');
  return Object(body).templates.t.instances[0].pid;
}

// Signals to process groups: who counts as running.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as assert from 'uvu/assert';
import { groupRuns, killTree, ownsGroup } from '../../../src/transports/stdio/process-group.ts';
import { until } from '../../conformance/transport.ts';
import { isRunning } from '../../helpers/is-running.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('process group');
const posix = test.needs(ownsGroup, 'Windows knows no process groups');

posix('does not count a member that is dead and not yet buried', async () => {
  // `sleep` takes the place of the shell and never asks for the end of the child it got with it.
  const leader = spawn('sh', ['-c', 'true & echo $!; exec sleep 60'], { detached: true, stdio: 'pipe' });
  const [output] = await once(leader.stdout, 'data');
  const member = Number(String(output));
  await until(() => !isRunning(member), 'the member is dead');
  assert.ok(groupRuns(Number(leader.pid)));
  leader.kill('SIGKILL');
  await once(leader, 'exit');
  assert.not(groupRuns(Number(leader.pid)));
});

test('ends a program by force, even where there is no taskkill', async () => {
  const program = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' });
  await once(program, 'spawn');
  killTree(Number(program.pid));
  await once(program, 'exit');
  assert.not(isRunning(Number(program.pid)));
});

test.run();

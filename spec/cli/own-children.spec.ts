import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as assert from 'uvu/assert';
import { killOwnChildren } from '../../src/cli/run-gateway.ts';
import { eventually } from '../helpers/gateway-client.ts';
import { isRunning } from '../helpers/is-running.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('own children');
const needsGroups = test.needs(process.platform !== 'win32', 'on Windows this process would end, too');

needsGroups('kills children that ignore signals, with what they started', async () => {
  const script = `process.on('SIGTERM', () => {});
    const { pid } = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: ['ignore', 'inherit', 'ignore'] });
    setInterval(() => {}, 1000);
    console.log(pid);`;
  const child = spawn(process.execPath, ['-e', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data');
  const grandchild = Number(line);
  const ended = once(child, 'exit');
  killOwnChildren();
  assert.equal(await ended, [null, 'SIGKILL']);
  // The output ends with the last process that holds it.
  if (!child.stdout.readableEnded) await once(child.stdout, 'end');
  // A killed process closes its output before it is gone.
  const isLeft = await eventually(
    async () => isRunning(grandchild),
    (left) => !left,
  );
  assert.is(isLeft, false);
});

test.run();

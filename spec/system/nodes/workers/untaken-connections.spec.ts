// Connections on their way to a worker that ends before it takes them: real processes, on SQLite.

import { get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { codeOf } from '../../../../src/domain/errors/errors.ts';
import { canFindProcesses, NO_PROCESSES } from '../../../helpers/programs/processes.ts';
import { suite } from '../../../helpers/suite.ts';
import { workersOf } from './gateway-of-workers.ts';

const test = suite('journey: untaken connections', { timeoutMs: 240_000 });
const { start } = workersOf(test);
const onLinux = test.needs(canFindProcesses, NO_PROCESSES);

onLinux('a worker ends before it took a connection of each port: both go to the other one', async () => {
  const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db', GATEWAY_METRICS_PORT: '0' });
  const [, second] = gateway.pids();
  const [, metrics = ''] = await gateway.program.complains(/metrics are served at (\S+\/metrics)/);
  process.kill(second, 'SIGSTOP');
  const asked = Array.from({ length: 4 }, () => [ended(`${gateway.url}/livez`), ended(metrics)]).flat();
  await delay(1_000);
  process.kill(second, 'SIGKILL');
  assert.equal(await Promise.all(asked), Array(8).fill(200));
});

onLinux('a worker ends before it took a connection, and no other takes it: it is closed', async () => {
  const gateway = await start({ GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' });
  const [first, second] = gateway.pids();
  send(second, 'SIGSTOP');
  const asked = Array.from({ length: 4 }, () => ended(`${gateway.url}/livez`));
  await delay(1_000);
  send(first, 'SIGTERM');
  await gateway.program.complains(/"worker":1,"duration_ms":\d+,"msg":"stopped"/);
  send(first, 'SIGSTOP'); // it has closed its port, and has not ended
  send(second, 'SIGKILL');
  const outcomes = await Promise.all(asked);
  send(first, 'SIGKILL');
  assert.equal(
    outcomes.filter((outcome) => outcome !== 200 && outcome !== 'ECONNRESET'),
    [],
  );
});

/** To a worker that may have ended already. */
function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (thrown) {
    assert.is(codeOf(thrown), 'ESRCH');
  }
}

/** Status of the answer over a connection of its own, or the code of the error; undefined after 20 s. */
function ended(url: string): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const asked = get(url, { agent: false, timeout: 20_000 }, (response) => {
    response.resume();
    resolve(response.statusCode);
  });
  asked.once('timeout', () => asked.destroy());
  asked.once('error', (error) => resolve(codeOf(error)));
  asked.once('close', () => resolve(undefined));
  return promise;
}

test.run();

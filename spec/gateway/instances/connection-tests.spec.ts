// The bounds of connection tests: their time, their number, and the end of what they opened.

import * as assert from 'uvu/assert';
import type { InstanceDefinition } from '../../../src/domain/instances/instance.ts';
import { definedFields } from '../../../src/domain/json/json.ts';
import { spreadClock } from '../../../src/domain/time/clock.ts';
import { ConnectionTests } from '../../../src/gateway/instances/connection-tests.ts';
import type { Open } from '../../../src/transports/open-options.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { ScriptedTransport } from '../../helpers/backends/scripted-transport.ts';
import { endOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulatedClock, simulateTime } from '../../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('connection tests');

simulateTime(test);

/** Tests with an `open` of the spec. */
function testsWith(open: Open) {
  const draft = async () => ({ id: 'draft' }) as InstanceDefinition;
  const clock = spreadClock(untimedScheduler(), simulatedClock);
  const tests = new ConnectionTests(clock, () => open, { instances: { draft } });
  const run = (callerId?: string) => tests.run('demo', { endpoint: 'x' }, definedFields({ callerId }));
  return { tests, run };
}

test('end after 10 s although the opening continues, and close a transport that opens late', async () => {
  const late = Promise.withResolvers<Transport>();
  const { run, tests } = testsWith((_signal, hooks) => {
    hooks?.onStarted?.(() => ({ pid: 1, stderr: ['downloading'] }));
    return late.promise;
  });
  const running = run();
  await pass(9_999);
  assert.is(await Promise.race([running, settled()]), undefined);
  await pass(1);
  const outcome = await running;
  assert.ok(!outcome.isOk);
  assert.equal([outcome.error.code, outcome.stderr], ['BACKEND_TIMEOUT', ['downloading']]);
  const closing = tests.close();
  assert.is(await Promise.race([closing.then(() => 'closed'), settled()]), undefined);
  const opened = new ScriptedTransport();
  late.resolve(opened);
  await closing;
  assert.is(opened.isClosed, true);
});

test('are limited in number, until their transports are closed', async () => {
  const opened: ScriptedTransport[] = [];
  const { run } = testsWith(async () => {
    const transport = Object.assign(new ScriptedTransport(), { closesSlowly: true });
    opened.push(transport);
    return transport;
  });
  assert.equal(await Promise.all([run(), run(), run(), run()].map(endOf)), Array(4).fill('done'));
  assert.is(await endOf(run()), 'QUEUE_FULL');
  for (const transport of opened) transport.finishClosing();
  await settled();
  assert.is(await endOf(run()), 'done');
});

test('are shared between callers: each may run half of them', async () => {
  const opened: ScriptedTransport[] = [];
  const { run } = testsWith(async () => {
    const transport = Object.assign(new ScriptedTransport(), { closesSlowly: true });
    opened.push(transport);
    return transport;
  });
  const ended = ['greedy', 'greedy', 'greedy', 'other', 'other', 'third'].map((caller) => endOf(run(caller)));
  const refused = 'QUEUE_FULL';
  assert.equal(await Promise.all(ended), ['done', 'done', refused, 'done', 'done', refused]);
  opened[0]?.finishClosing();
  await settled();
  assert.is(await endOf(run('greedy')), 'done', 'a refused test holds nothing');
  assert.is(await endOf(run('greedy')), refused);
});

test('are refused and stopped when the gateway closes', async () => {
  const { run, tests } = testsWith(
    (signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('called off')))),
  );
  const running = run();
  await settled();
  await tests.close();
  const outcome = await running;
  assert.is(!outcome.isOk && outcome.error.code, 'SHUTTING_DOWN');
  assert.is(await endOf(run()), 'SHUTTING_DOWN');
});

test.run();

// Dedicated processes outlive the shared process of their instance: their clients are not affected when the shared one dies,
// hangs or cannot be started. Real programs, real HTTP. They end with each command of an operator that ends their instance, and
// their number is limited over all restarts. Drains and restarts in other states: instance.machine-dedicated.spec.ts and
// client-session-rebinding.spec.ts.

import * as assert from 'uvu/assert';
import { type LegacyClient, ModernClient, textOf } from '../../helpers/clients/mcp-client.ts';
import { canFindProcesses, isRunning, NO_PROCESSES } from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  allGone,
  count,
  type DedicatedHarness,
  dedicatedTests,
  KILLED,
  type Loss,
  PATH,
  pidOf,
  QUESTION,
  SAID_YES,
  TEMPLATE,
  YES,
} from './dedicated-processes.ts';

const suited = suite('dedicated processes', { timeoutMs: 60_000 });
const test = dedicatedTests(suited);
const needsProcesses = dedicatedTests(suited.needs(canFindProcesses, NO_PROCESSES));

/** The call may still be unanswered when the gateway ends. */
const SILENCED: Loss = ({ app }) =>
  void Promise.allSettled([app.gateway.call(TEMPLATE, 'misbehave', { how: 'half-line' })]);

const LOSSES: Readonly<Record<string, Loss>> = {
  'is killed': KILLED,
  'says nothing more, until the gateway closes it': SILENCED,
};

for (const [what, loss] of Object.entries(LOSSES)) {
  test(`a session keeps its process and its state when the shared one ${what}`, {
    policy: { healthIntervalMs: 500, probeTimeoutMs: 500 },
  }, async (harness) => {
    await harness.add();
    const client = await harness.client();
    const pid = await pidOf(client);
    const shared = harness.sharedPid();
    assert.is.not(pid, shared);

    const notifications = await countsDuring(client, harness.lose(loss));
    notifications.push(await count(client));
    await harness.regain();
    notifications.push(await count(client));

    const isWrong = (text: string, index: number) => text !== String(index + 1);
    assert.equal([...new Set(notifications.filter(isWrong))], [], 'each call was answered, and counted once');
    assert.is(await pidOf(client), pid);
    assert.is.not(harness.sharedPid(), shared);
  });
}

test('a session can be ended while there is no shared process, and its process ends', {}, async (harness) => {
  await harness.add();
  const [going, staying] = [await harness.client(), await harness.client()];
  const pids = [await pidOf(going), await pidOf(staying)];
  await harness.lose();
  assert.ok((await going.close()) < 300);
  await harness.settlesAt(1);
  await allGone(pids.slice(0, 1)); // it is no longer listed before it has ended
  assert.equal(pids.map(isRunning), [false, true]);
  assert.equal([await count(going), await count(staying)], ['404 -32001', '1']);
});

test('a stateless client can continue its waiting call while there is no shared process', {}, async (harness) => {
  await harness.add();
  const client = new ModernClient(harness.wire, PATH, ASKABLE);
  const once = async (carried: object) => {
    const params = { name: 'ask', arguments: QUESTION, ...carried };
    const { id, ...sent } = client.request('tools/call', params);
    return (await harness.wire.exchange(PATH, sent)).messages.find((message) => message.id === id);
  };
  const first = Object((await once({}))?.result);
  assert.is(first.resultType, 'input_required');
  assert.is(await harness.dedicatedProcesses(), 1);
  await harness.lose();
  const inputResponses = Object.fromEntries(Object.keys(first.inputRequests).map((key) => [key, YES]));
  const answer = await once({ requestState: first.requestState, inputResponses });
  assert.match(textOf({ result: answer?.result }), SAID_YES);
  assert.is(await harness.dedicatedProcesses(), 1);
});

/** Commands of an operator; `isOver` if the instance does not come back. */
const ENDS: Readonly<
  Record<string, { act(harness: DedicatedHarness): Promise<void>; readonly isOver: boolean }>
> = {
  'a restart': { act: (harness) => harness.command('restart'), isOver: false },
  'a replacement': { act: (harness) => harness.add({ isAwaited: false }), isOver: false },
  'a deregistration': { act: (harness) => harness.command('deregister'), isOver: true },
  'the end of the gateway': { act: (harness) => harness.app.close(), isOver: true },
};
for (const [what, { act, isOver }] of Object.entries(ENDS))
  test(`${what} ends all dedicated processes while there is no shared one`, {}, async (harness) => {
    await harness.add();
    const clients = [await harness.client(), await harness.client()];
    const own = await Promise.all(clients.map(pidOf));
    await harness.lose();
    assert.equal(own.map(isRunning), [true, true], 'they are there until then');
    await act(harness);
    await allGone(own);
    if (isOver) return;
    await harness.regain();
    const lost = '404 -32001';
    assert.equal(await Promise.all(clients.map((client) => count(client))), [lost, lost]);
  });

needsProcesses(
  'sessions that open while the shared process dies never exceed the limit, and leave nothing',
  { processes: 3 },
  async (harness) => {
    await harness.add();
    for (let life = 0; life < 3; life += 1) {
      // At every step of their opening: the first starts its program, others find a reserve or wait for capacity.
      const knocks = Array.from({ length: 3 }, async (_, index) => {
        if (index > 0) await harness.dedicatedProcesses();
        return harness.knock();
      });
      harness.kill(harness.sharedPid());
      const answers = await Promise.all(knocks);
      for (const { said } of answers) assert.match(said, /^(?:200|429 QUEUE_FULL|503 \w+)$/);
      const open = answers.flatMap(({ sessionId }) => sessionId ?? []);
      await harness.settlesAt(open.length);
      await Promise.all(open.map((id) => harness.end(id)));
      await harness.settlesAt(0);
      await harness.regain();
    }
    for (let times = 0; times < 3; times += 1) await harness.comeIn();
    assert.is((await harness.knock()).said, '429 QUEUE_FULL');
  },
);

suited.run();

/** Makes one call at a time until the event is over, at least one. */
async function countsDuring(client: LegacyClient, event: Promise<void>): Promise<string[]> {
  const notifications: string[] = [];
  let isOver = false;
  const ending = event.finally(() => {
    isOver = true;
  });
  const counting = async () => {
    do notifications.push(await count(client));
    while (!isOver);
  };
  await Promise.all([ending, counting()]);
  return notifications;
}

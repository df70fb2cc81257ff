// What an instance shows over time, to those who watch from the start and to those who come later.

import type { Subscription } from 'rxjs';
import * as assert from 'uvu/assert';
import { streamsOf } from '../../../src/actors/instances/instance-view.ts';
import { suite } from '../../helpers/suite.ts';
import { type Harness, onHarness, settled } from './instance-harness.ts';

const test = suite('instance streams');
const check = onHarness(test);

/** What a new subscriber to the state hears. */
function watch({ ref }: Harness) {
  const heard: string[] = [];
  const subscription: Subscription = ref.state$.subscribe({
    next: (state) => heard.push(state),
    error: () => heard.push('error'),
    complete: () => heard.push('completed'),
  });
  return { heard, subscription };
}

check('replays the state to whoever comes later, and ends with stopped', async (harness) => {
  await harness.healthy();
  const { heard } = watch(harness);
  assert.equal(heard, ['healthy']);
  harness.ref.leave(0);
  await settled();
  assert.equal(heard, ['healthy', 'draining', 'stopped', 'completed']);
  assert.equal(watch(harness).heard, ['stopped', 'completed']);
});

check('tells a state only when it is another one', async (harness) => {
  const transport = await harness.healthy();
  transport.onExchange = (exchange) => exchange.result();
  const { heard } = watch(harness);
  for (let round = 0; round < 3; round += 1) {
    harness.call();
    await harness.pass(30_000);
  }
  assert.equal(heard, ['healthy']);
});

check('replays the present state after everybody had unsubscribed', async (harness) => {
  const other = streamsOf(harness.actor);
  other.state$.subscribe().unsubscribe();
  await harness.healthy();
  const heard: string[] = [];
  other.state$.subscribe((state) => heard.push(state));
  harness.ref.drain();
  assert.equal(heard, ['healthy', 'draining']);
});

check('ends with stopped when it is stopped from above, also for who comes later', async (harness) => {
  const { heard } = watch(harness);
  harness.actor.stop();
  assert.equal(heard, ['starting', 'stopped', 'completed']);
  const late: string[] = [];
  streamsOf(harness.actor).state$.subscribe({
    next: (state) => late.push(state),
    complete: () => late.push('completed'),
  });
  assert.equal(late, ['stopped', 'completed']);
});

check('hears what its present session hears, also after a restart', async (harness) => {
  const heard: string[] = [];
  for (const listener of ['one', 'two']) {
    harness.ref.messages$.subscribe({
      next: ({ method }) => heard.push(`${listener} ${method}`),
      complete: () => heard.push(`${listener} completed`),
    });
  }
  (await harness.healthy()).tell('a');
  assert.equal(heard.splice(0), ['one a', 'two a']);
  harness.opener.transports.at(-1)?.lose();
  await settled();
  await harness.pass(1_000);
  (await harness.healthy()).tell('b');
  assert.equal(heard.splice(0), ['one b', 'two b']);
  harness.ref.leave(0);
  await settled();
  assert.equal(heard.splice(0), ['one completed', 'two completed']);
  harness.ref.messages$.subscribe({ complete: () => heard.push('late completed') });
  assert.equal(heard, ['late completed']);
});

test.run();

// What an instance shows over time, to those who watch from the start and to those who come later.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { onHarness, settled } from './instance-harness.ts';

const test = suite('instance streams');
const check = onHarness(test);

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

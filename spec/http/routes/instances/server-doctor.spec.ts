// POST /gateway/templates/{template}/doctor: an examination ends with its caller, and callers share their number.

import * as assert from 'uvu/assert';
import { becomes } from '../../../helpers/eventually.ts';
import { type Credentials, startWithAccounts } from '../../../helpers/http/accounts.ts';
import { appFor } from '../../../helpers/http/app.ts';
import { endOf } from '../../../helpers/outcome.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('examinations of servers');
const app = appFor(test, startWithAccounts);

const examine = (who: Credentials, signal = new AbortController().signal) =>
  app.as(who, 'POST', '/gateway/templates/silent/doctor', { signal });

/** Registers an instance that answers no list of prompts. Its lists that are asked and not cancelled. */
async function registerSilent(): Promise<Set<AbortSignal>> {
  const asked = new Set<AbortSignal>();
  const handler = async ({ method }: { method: string }, { signal }: { signal: AbortSignal }) => {
    if (method !== 'prompts/list') return { tools: [] };
    asked.add(signal);
    signal.addEventListener('abort', () => asked.delete(signal));
    return new Promise(() => {});
  };
  await app.gateway.register('silent', { id: 'one', handler }, { waitMs: 5_000 });
  return asked;
}

test('end when their caller disconnects, and are shared between callers', async () => {
  const asked = await registerSilent();
  const keyOf = () => app.key(['gateway:write']);
  const [greedy, other] = [await keyOf(), await keyOf()];
  const leaving = new AbortController();
  const running = [1, 2].map(() => endOf(examine(greedy, leaving.signal)));
  await becomes(() => asked.size, 2);
  assert.is((await examine(greedy)).outcome, '429 QUEUE_FULL');
  const others = endOf(examine(other, leaving.signal));
  await becomes(() => asked.size, 3);
  leaving.abort();
  await Promise.all([...running, others]);
  await becomes(() => asked.size, 0);
  const again = new AbortController();
  const next = endOf(examine(greedy, again.signal));
  await becomes(() => asked.size, 1);
  again.abort();
  await next;
  await app.gateway.deregister('silent', 'one');
});

test.run();

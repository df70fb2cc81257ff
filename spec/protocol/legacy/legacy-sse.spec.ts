// How many streams of HTTP+SSE may wait for their client; the rest of this transport is in http/mcp-sse.spec.ts, over a real port.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { ANONYMOUS, NO_PRINCIPAL } from '../../../src/domain/account.ts';
import { LegacySse } from '../../../src/protocol/legacy/legacy-sse.ts';
import { endOf } from '../../helpers/outcome.ts';
import { simulatedClock } from '../../helpers/simulated-time.ts';
import { suite } from '../../helpers/suite.ts';
import { untimedScheduler } from '../../helpers/turns.ts';
import { RecordedReply } from '../recorded-reply.ts';
import { legacyHarness } from './legacy-harness.ts';

const test = suite('streams of HTTP+SSE');
test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

test('at most 1,000 have no session, 250 of one owner unless it is anonymous; each for a minute', async () => {
  const { backends, endpoint } = legacyHarness();
  const sse = new LegacySse(endpoint, {
    onFault: () => {},
    scheduler: untimedScheduler(),
    clock: simulatedClock,
  });
  const report = () => ({ ended: () => {} });
  const common = { method: 'GET', headers: { accept: 'text/event-stream' }, body: Buffer.alloc(0) } as const;
  const rest = {
    ...common,
    template: 't',
    requestId: 'r',
    requireRoom: () => {},
    consumeRateLimit: () => {},
    report,
  };
  const open = async (id: string): Promise<RecordedReply> => {
    const reply = new RecordedReply();
    const request = { ...rest, principal: { ...NO_PRINCIPAL, id } };
    sse.open({ isOnly: true, messagesPath: '/m' }, request, reply, backends);
    return reply;
  };
  const [first] = await Promise.all(Array.from({ length: 250 }, () => open('ann')));
  assert.is(await endOf(open('ann')), 'SESSION_LIMIT');
  for (let count = 250; count < 1_000; count += 1) await open(ANONYMOUS.id);
  for (const id of ['bob', ANONYMOUS.id]) assert.is(await endOf(open(id)), 'SESSION_LIMIT');
  first?.lose();
  assert.is(await endOf(open('ann')), 'done');
  mock.timers.tick(60_000);
  assert.equal([first?.events.isEnded, await endOf(open('bob'))], [true, 'done']);
});

test.run();

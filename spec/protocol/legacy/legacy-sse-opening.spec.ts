// A stream of HTTP+SSE until its session is open, which may take as long as the start of a program. All else: legacy-sse.spec.ts.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { NO_PRINCIPAL } from '../../../src/domain/accounts/principal.ts';
import { newSessionId } from '../../../src/domain/nodes/life.ts';
import { LegacySse } from '../../../src/protocol/legacy/legacy-sse.ts';
import { suite } from '../../helpers/suite.ts';
import { settled, simulatedClock } from '../../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';
import { parsed, RecordedReply } from '../recorded-reply.ts';
import { legacyHarness } from './legacy-harness.ts';

const test = suite('a stream of HTTP+SSE without a session');
test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'Date'] }));
test.after.each(() => mock.timers.reset());

test('stays open while its session is being opened, and has a minute again if that fails', async () => {
  const { backends, endpoint } = legacyHarness();
  const sse = new LegacySse(endpoint, {
    onFault: () => {},
    newSessionId: () => newSessionId('life-one'),
    scheduler: untimedScheduler(),
    clock: simulatedClock,
  });
  const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  const common = {
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })),
    pathName: 't',
    requestId: 'r',
    principal: { ...NO_PRINCIPAL, id: 'ann' },
    requireRoom: () => {},
    consumeRateLimit: () => {},
    report: () => ({ ended: () => {} }),
  };
  const reply = new RecordedReply();
  sse.open({ isOnly: true, messagesPath: '/m' }, { request: { ...common, method: 'GET' }, reply, backends });
  const { events: stream } = reply;
  const sseSessionId = String(stream.events[0]?.data).split('=')[1] ?? '';
  const starting = Promise.withResolvers<void>();
  backends.opening = () => starting.promise;
  const request = { ...common, method: 'POST', sseSessionId } as const;
  await sse.post(sseSessionId, { request, reply: new RecordedReply(), backends });
  mock.timers.tick(200_000);
  await settled();
  assert.equal([stream.isEnded, backends.signals[0]?.aborted], [false, false]);
  starting.reject(new Error('it did not start'));
  await settled();
  mock.timers.tick(59_999);
  const { id, error } = parsed(stream.events.at(-1)?.data ?? '');
  assert.equal([id, error !== undefined, stream.isEnded], [1, true, false]);
  mock.timers.tick(1);
  assert.is(stream.isEnded, true);
});

test.run();

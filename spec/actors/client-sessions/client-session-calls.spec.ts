// The calls of a session: how many there are, where, and how they end with it.

import { firstValueFrom, map, type Observable } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ClientSession } from '../../../src/actors/client-sessions/client-session.ts';
import { type CallsOwner, SessionCalls } from '../../../src/actors/client-sessions/client-session-calls.ts';
import type { SessionReservation } from '../../../src/actors/client-sessions/client-session-types.ts';
import type { SessionRoute } from '../../../src/actors/client-sessions/session-route.ts';
import { sessionLost } from '../../../src/domain/error-catalogue.ts';
import { asGatewayError, type GatewayError } from '../../../src/domain/errors.ts';
import type { Answer, ExchangeRequest } from '../../../src/domain/exchange.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { listen, toolCall } from '../../helpers/failing-backend.ts';
import type { ScriptedExchange } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  ask,
  HTTP,
  MODERN,
  resultOf,
  SessionHarness,
  settled,
  silent,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client session: calls');
let harness = new SessionHarness();
simulateTime(test, () => harness.close());

/** The calls of a session whose binding is a part in `a`. */
async function begin() {
  harness = new SessionHarness();
  const ref = await harness.add('a', { script: silent });
  const { dispatcher } = harness.inner;
  const binding = harness.sessions.binder.shared.join(ref, harness.transport('a').peer);
  const told: string[] = [];
  const owner: CallsOwner & { endedFor: string | undefined } = {
    ownerId: 'ann',
    endedFor: undefined,
    used: () => told.push('used'),
    rested: () => told.push('rested'),
  };
  const { deps } = harness.sessions;
  const place = {
    deps,
    binding,
    queue: harness.inner.fleet.group('t').queue,
    usableBinding: binding,
    mayMove: false,
    mayUpgrade: true,
    wait: () => () => undefined,
    carry: (request: ExchangeRequest, route: SessionRoute) =>
      dispatcher.carry('t', request, () => ({
        group: harness.inner.fleet.group('t'),
        request,
        route,
        wantedTool: undefined,
        timeoutMs: 30_000,
      })),
    passage: (request: ExchangeRequest) => ({ request }),
    isEjected: () => false,
    leave: () => false,
    countUnsafe: () => undefined,
  };
  return { calls: new SessionCalls(place, owner), owner, told };
}

test('counts those that are under way, and the places that are kept for more', async () => {
  const { calls, told } = await begin();
  assert.equal([calls.size, calls.arePlaced], [0, false]);
  const stay = keep(calls);
  const call = listen(calls.exchange(toolCall('read')));
  assert.equal([calls.size, calls.arePlaced], [2, true]);
  harness.transport('a').last.result('done');
  await call.end;
  assert.equal([calls.size, calls.arePlaced], [1, true]);
  stay.leave();
  stay.leave();
  assert.equal([calls.size, calls.arePlaced], [0, false]);
  assert.equal(told, ['used', 'rested', 'used', 'rested', 'rested']);
});

test('answers all of them when the session is over, and begins nothing more', async () => {
  const { calls, owner } = await begin();
  const ends: unknown[] = [];
  const tell = (thrown: unknown): void => {
    const { code, delivered } = asGatewayError(thrown);
    ends.push([code, delivered]);
  };
  keep(calls, tell);
  const call = listen(calls.exchange(toolCall('write')));
  owner.endedFor = 'it was closed';
  calls.end(sessionLost('it was closed'));
  tell(await call.end);
  tell(await listen(calls.exchange(toolCall('read'))).end);
  const sent = ['SESSION_NOT_FOUND', 'unknown'];
  assert.equal(ends.toSorted(), [['SESSION_NOT_FOUND', 'no'], sent, sent]);
  assert.equal([calls.size, harness.ref('a').carried, harness.ref('a').snapshot(1).inFlight], [0, 0, 0]);
});

test('keeps it there when another instance has the same id by now', async () => {
  harness = new SessionHarness({ policy: { sessionFailover: 'always' } });
  const backend = { peer: MODERN, fields: HTTP, script: byTool };
  await harness.add('a', backend);
  const session = await harness.open(ASKABLE);
  const first = await firstValueFrom(stayAfter(session, session.exchange(toolCall('write'))));
  await harness.add('a', backend);
  const other = ask(session, 'slow');
  await settled();
  const [old, next] = harness.transports.get('a') ?? [];
  assert.equal([next?.last.request.params?.name, old?.isClosed], ['slow', false]);
  const second = await firstValueFrom(stayAfter(session, first.exchange(toolCall('write'))));
  first.leave();
  await resultOf(listen(second.exchange(toolCall('write'))));
  const written = (transport = old) =>
    transport?.exchanges.filter(({ request }) => request.params?.name === 'write').length;
  assert.equal([written(old), written(next)], [3, 0]);
  second.leave();
  other.subscription.unsubscribe();
});

test('keeps no more places than the share of its owner at the instance, but for calls that go on', async () => {
  const { calls } = await begin();
  const lost: string[] = [];
  const tell = ({ code, delivered }: GatewayError): number => lost.push(`${code} ${delivered}`);
  const kept = Array.from({ length: LIMITS.parkedCalls * LIMITS.ownerShare }, () => keep(calls, tell));
  const [first] = kept;
  assert.equal([calls.size, lost], [250, []]);
  keep(calls, tell);
  assert.equal([calls.size, lost.splice(0)], [250, ['QUEUE_FULL unknown']]);
  const next = first && keep(calls, tell, first);
  assert.equal([calls.size, lost], [251, []], 'until it leaves its place before');
  for (const stay of [...kept, next]) stay?.leave();
  assert.equal([calls.size, harness.ref('a').snapshot(1).inFlight], [0, 0]);
});

test.run();

/** Keeps a place with the answer to a call, which may be the next one of a call that has a place. */
function keep(
  calls: SessionCalls,
  lost: (error: GatewayError) => void = () => undefined,
  before: Pick<SessionReservation, 'exchange'> = calls,
): SessionReservation {
  const stays: SessionReservation[] = [];
  before.exchange(toolCall('write')).subscribe((answer) => stays.push(calls.reserve(answer, lost)));
  harness.transport('a').last.result();
  const [stay] = stays;
  if (stay === undefined) throw new Error('there was no answer');
  return stay;
}

/** Answers what is not slow. */
function byTool(exchange: ScriptedExchange): void {
  if (exchange.request.params?.name !== 'slow') queueMicrotask(() => exchange.result());
}

/** Keeps a place with each answer. */
function stayAfter(session: ClientSession, answers$: Observable<Answer>): Observable<SessionReservation> {
  return answers$.pipe(map((answer) => session.reserve(answer, () => undefined)));
}

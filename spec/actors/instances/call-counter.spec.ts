// Parts of an instance: the counter of its calls, its probes.

import { defer, of } from 'rxjs';
import * as assert from 'uvu/assert';
import { createActor, toPromise } from 'xstate';
import type { AttemptEnding } from '../../../src/actors/calls/call-events.ts';
import { CallCounter } from '../../../src/actors/instances/call-counter.ts';
import { probe } from '../../../src/actors/instances/probe.ts';
import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import type { FinalEvent } from '../../../src/domain/calls/exchange-event.ts';
import { asGatewayError, GatewayError } from '../../../src/domain/errors/errors.ts';
import { JsonText } from '../../../src/domain/json/json.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { RPC } from '../../../src/domain/mcp/jsonrpc.ts';
import type { Era } from '../../../src/domain/mcp/mcp.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { HANDSHAKE } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('parts of an instance');
const ended = (outcome: AttemptEnding['outcome'], durationMs = 10): AttemptEnding => ({
  outcome,
  waitMs: 0,
  durationMs,
  error: undefined,
});
const ok: FinalEvent = { kind: 'result', result: JsonText.ofValue({}) };
const refused = (code: number): FinalEvent => ({ kind: 'error', error: { code, message: 'no' } });
const unknownMethod = refused(RPC.methodNotFound);
/** Probes a session that gives these answers, one after the other; each takes 7 ms. */
async function probed(era: Era, answers: readonly FinalEvent[]) {
  let nowMs = 1_000;
  const asked: string[] = [];
  const exchange = ({ method }: ExchangeRequest) =>
    defer(() => {
      nowMs += 7;
      return of(answers[asked.push(method) - 1] ?? refused(0));
    });
  const opened = { transport: { handshake: { ...HANDSHAKE, era }, exchange }, lastMessageAtMs: 0 };
  const actor = createActor(probe, {
    input: { opened, timeoutMs: 10_000, clock: { ...systemClock, now: () => nowMs } },
  });
  const outcome = toPromise(actor).catch(asGatewayError);
  actor.start();
  return { outcome: await outcome, asked };
}

test('a call may not wait for its client when too many do, in total or of its owner', () => {
  const calls = new CallCounter();
  for (let call = 0; call <= LIMITS.callsAwaitingClient; call += 1) calls.begin('ann');
  for (const owner of ['ann', 'bob', 'cyd', 'dan'])
    for (let call = 0; call < LIMITS.callsAwaitingClient / 4; call += 1)
      assert.ok(calls.beginAwaitingClient(owner));
  assert.equal([calls.beginAwaitingClient('eve'), calls.active], [false, 1]);
  calls.endAwaitingClient('ann');
  assert.equal(
    [calls.beginAwaitingClient('bob'), calls.beginAwaitingClient('ann'), calls.active],
    [false, true, 1],
  );
});

test('capacity above the limit is only for owners below an equal share, while another is above it', () => {
  const calls = new CallCounter();
  const take = (owner: string, count: number) => {
    for (let call = 0; call < count; call += 1) calls.begin(owner);
  };
  for (let owner = 0; owner < LIMITS.inFlightPerInstance; owner += 1) take(`${owner}`, 1);
  assert.is(calls.hasCapacityFor('one more'), false, 'no owner holds more than one place');
  calls.end('0', ended('result'));
  take('1', 1);
  assert.is(calls.hasCapacityFor('0'), true);
  assert.equal([calls.hasCapacityFor('1'), calls.isBelowShare('1')], [false, false]);
  take('0', 1);
  assert.is(calls.active, LIMITS.inFlightPerInstance + 1);
});

test('counts calls up and down', () => {
  const calls = new CallCounter();
  for (const outcome of ['result', 'error', 'failed', 'cancelled'] as const) {
    calls.begin('ann');
    assert.equal([calls.underWay, calls.isIdle], [1, false]);
    calls.end('ann', ended(outcome));
    assert.equal([calls.underWay, calls.isIdle], [0, true]);
  }
});

test('averages the time of answers, error answers included; a failure lowers the success rate', () => {
  const calls = new CallCounter();
  const end = (outcome: AttemptEnding['outcome'], durationMs: number) => {
    calls.begin('ann');
    calls.end('ann', ended(outcome, durationMs));
    return [calls.successRate, calls.latencyMs];
  };
  assert.equal(end('result', 42), [1, 42]);
  assert.equal(end('failed', 9_000), [0.8, 42]);
  assert.equal(end('error', 32), [0.8400000000000001, 40]);
});

for (const [era, answers, methods, durationMs] of [
  ['legacy', [unknownMethod], ['ping'], 7],
  ['modern', [unknownMethod], ['server/discover'], 7],
  ['bare', [unknownMethod, ok], ['ping', 'tools/list'], 14],
] as const) {
  test(`a probe passes a ${era} server that does not know ${methods[0]} (a bare one must list its tools)`, async () => {
    assert.equal(await probed(era, answers), { outcome: { durationMs, isAnswered: true }, asked: methods });
  });
}

test('a probe fails a bare server that knows neither ping nor tools/list', async () => {
  const { outcome } = await probed('bare', [unknownMethod, unknownMethod]);
  assert.instance(outcome, GatewayError);
  const { code, delivered, message } = asGatewayError(outcome);
  assert.equal([code, delivered], ['BACKEND_UNAVAILABLE', 'yes']);
  assert.is(message, 'The backend is unavailable: its probe was answered with error -32601.');
});

test.run();

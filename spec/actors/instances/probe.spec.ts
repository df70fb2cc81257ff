// One probe: what is asked in each era, and which answers are a sign of life.
// What passed and failed probes lead to is in instance.machine-health.spec.ts.

import * as assert from 'uvu/assert';
import { createActor, toPromise } from 'xstate';
import { type ProbeInput, type ProbeResult, probe } from '../../../src/actors/instances/probe.ts';
import { backendTimeout } from '../../../src/domain/error-catalogue.ts';
import { asGatewayError, GatewayError } from '../../../src/domain/errors.ts';
import type { FinalEvent } from '../../../src/domain/exchange.ts';
import { JsonText } from '../../../src/domain/json.ts';
import { RPC } from '../../../src/domain/jsonrpc.ts';
import type { Era } from '../../../src/domain/mcp.ts';
import { PEER } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('probe');

const ok: FinalEvent = { kind: 'result', result: JsonText.ofValue({}) };
const refused = (code: number): FinalEvent => ({ kind: 'error', error: { code, message: 'no' } });
const unknownMethod = refused(RPC.methodNotFound);

type Answer = FinalEvent | (() => Promise<FinalEvent>);

/** Probes a session that gives these answers, one after the other; each takes 7 ms. */
async function probed(era: Era, answers: readonly Answer[], lastMessageAtMs: () => number = () => 0) {
  const clock = { nowMs: 1_000 };
  const asked: string[] = [];
  const timeouts: number[] = [];
  const link: ProbeInput['link'] = {
    peer: { ...PEER, era },
    lastMessageAtMs,
    ask: async ({ method }, timeoutMs) => {
      asked.push(method);
      timeouts.push(timeoutMs);
      clock.nowMs += 7;
      const answer = answers[asked.length - 1];
      if (answer === undefined) throw new Error('asked too often');
      return typeof answer === 'function' ? answer() : answer;
    },
  };
  const actor = createActor(probe, { input: { link, timeoutMs: 10_000, now: () => clock.nowMs } });
  const outcome = toPromise(actor).catch(asGatewayError);
  actor.start();
  return { outcome: await outcome, asked, timeouts };
}

/** What is worth comparing of a probe that failed; undefined when it passed. */
function failureOf(outcome: ProbeResult | GatewayError) {
  if (!(outcome instanceof GatewayError)) return undefined;
  const { code, delivered, message } = outcome;
  return { code, delivered, message };
}

const answered = (durationMs: number): ProbeResult => ({ durationMs, isAnswered: true });
const silent = () => Promise.reject(backendTimeout(10_000));

test('passes a server that answers that it does not know the question', async () => {
  for (const era of ['legacy', 'modern'] as const) {
    const { outcome, asked } = await probed(era, [unknownMethod]);
    assert.equal(outcome, answered(7));
    assert.is(asked.length, 1);
  }
});

test('wants the tools of a bare server that does not know ping', async () => {
  const { outcome, asked } = await probed('bare', [unknownMethod, ok]);
  assert.equal(outcome, answered(14));
  assert.equal(asked, ['ping', 'tools/list']);
});

test('fails a bare server that knows neither', async () => {
  const { outcome } = await probed('bare', [unknownMethod, unknownMethod]);
  assert.equal(failureOf(outcome), {
    code: 'BACKEND_UNAVAILABLE',
    delivered: 'yes',
    message: 'The backend is unavailable: its probe was answered with error -32601.',
  });
});

test('passes a silent server that said something else since the probe began', async () => {
  const { outcome } = await probed('legacy', [silent], () => 1_001);
  assert.equal(outcome, { durationMs: 7, isAnswered: false });
});

test.run();

// An exchange as one promise: its last event, or why there is none.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { finalAnswer, isUnknownMethod, resultOf } from '../../../src/actors/calls/final-answer.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { Answer, ExchangeEvent, FinalAnswer, FinalEvent } from '../../../src/domain/exchange.ts';
import { JsonText } from '../../../src/domain/json.ts';
import { told, toolCall } from '../../helpers/failing-backend.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('final answer');
const NOTIFICATION = answer({ kind: 'notification', method: 'notifications/progress', params: {} });
const RESULT = final({ kind: 'result', result: JsonText.ofValue({ ok: true }) });
const REQUEST = toolCall('write');

test('rejects when the exchange ends without an answer', async () => {
  const answers = new Subject<Answer>();
  const promise = finalAnswer(answers);
  answers.next(NOTIFICATION);
  answers.complete();
  assert.equal(codeOf(await rejection(promise)), { code: 'BACKEND_UNAVAILABLE', delivered: 'unknown' });
});

test('does not even start when the signal was aborted before', async () => {
  const answers = new Subject<Answer>();
  const reason = new Error('too late');
  assert.is(await rejection(finalAnswer(answers, AbortSignal.abort(reason))), reason);
  assert.is(answers.observed, false);
});

test('leaves no listener on the signal', async () => {
  const { signal } = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...parameters: Parameters<typeof addEventListener>) => {
    listeners += 1;
    addEventListener.apply(signal, parameters);
  };
  signal.removeEventListener = (...parameters: Parameters<typeof removeEventListener>) => {
    listeners -= 1;
    removeEventListener.apply(signal, parameters);
  };
  const answers = new Subject<Answer>();
  const promise = finalAnswer(answers, signal);
  assert.is(listeners, 1);
  answers.next(RESULT);
  answers.complete();
  await promise;
  assert.is(listeners, 0);
});

test('throws what an error answer means to the caller', () => {
  const refusal = final({ kind: 'error', error: { code: -32602, message: 'bad' } });
  assert.equal(codeThrownBy(refusal), { code: 'INVALID_TOOL_ARGUMENTS', delivered: 'yes' });
});

test('throws a GatewayError, not a SyntaxError, when the result is no JSON after all', () => {
  const broken = final({ kind: 'result', result: JsonText.ofBytes(Buffer.from('{"a":')) });
  assert.equal(codeThrownBy(broken), { code: 'BACKEND_UNAVAILABLE', delivered: 'yes' });
});

test('knows the answer to an unknown method', () => {
  const refusal = (code: number) => final({ kind: 'error', error: { code, message: '' } });
  assert.equal(
    [refusal(-32601), refusal(-32602), RESULT].map((one) => isUnknownMethod(one)),
    [true, false, false],
  );
});

test.run();

function answer(event: ExchangeEvent): Answer {
  return { event, instanceId: 'a', serverId: 'a' };
}

function final(event: FinalEvent): FinalAnswer {
  return { event, instanceId: 'a', serverId: 'a' };
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    return { resolvedWith: await promise };
  } catch (thrown) {
    return thrown;
  }
}

function codeOf(thrown: unknown): unknown {
  return thrown instanceof GatewayError ? told(thrown) : thrown;
}

function codeThrownBy(final: FinalAnswer): unknown {
  try {
    return { returned: resultOf(final, REQUEST) };
  } catch (thrown) {
    return codeOf(thrown);
  }
}

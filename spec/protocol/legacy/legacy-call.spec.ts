// One call under way: it ends once, whatever comes together. What is written is in legacy-endpoint.spec.ts.

import { Observable, Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import type { Answer, ExchangeEvent } from '../../../src/domain/exchange.ts';
import { JsonText } from '../../../src/domain/json.ts';
import { LegacyCall, type LegacyCallDeps } from '../../../src/protocol/legacy/legacy-call.ts';
import { LegacyPost } from '../../../src/protocol/legacy/legacy-post.ts';
import { suite } from '../../helpers/suite.ts';
import { RecordedReply } from '../recorded-reply.ts';

const test = suite('legacy call');

const said = (event: ExchangeEvent): Answer => ({ event, instanceId: 'one', serverId: 't.one' });
const RESULT = said({ kind: 'result', result: JsonText.ofValue({}) });

function begun(answers$?: Observable<Answer>) {
  const log: string[] = [];
  const reply = new RecordedReply();
  const host: LegacyCallDeps = {
    instanceId: 'one',
    ask: ({ method }) => log.push(`asks ${method}`),
    ended: () => log.push('ended'),
    onFault: (error) => log.push(`fault: ${Object(error).cause?.message}`),
    settled: () => log.push(reply.isAnswered ? 'answered' : 'silent'),
  };
  const answers = new Subject<Answer>();
  const openStream = () => {
    throw new Error('no stream is needed');
  };
  const call = new LegacyCall(7, new LegacyPost(reply, openStream, 1, true), host);
  call.start(answers$ ?? answers);
  return { call, answers, reply, log };
}

test('is over before its answer is written', () => {
  const { answers, log } = begun();
  answers.next(RESULT);
  answers.complete();
  assert.equal(log, ['ended', 'answered']);
});

test('names who answered, unless it comes from memory', () => {
  const [asked, remembered] = [begun(), begun()];
  asked.answers.next(RESULT);
  remembered.answers.next({ ...RESULT, isRemembered: true });
  assert.equal([asked.reply.instanceId, remembered.reply.instanceId], ['one', undefined]);
});

test('an answer that is there at once is one', () => {
  const { reply, log } = begun(
    new Observable((subscriber) => {
      subscriber.next(RESULT);
      subscriber.next(RESULT);
      subscriber.error(new Error('late'));
    }),
  );
  assert.equal([reply.status, log], [200, ['ended', 'answered']]);
});

test('cancelling it ends it on the backend, and what crosses is dropped', () => {
  const { call, answers, log } = begun();
  call.cancel();
  call.cancel();
  call.fail(new Error('late'));
  call.next(RESULT);
  assert.equal([answers.observed, log], [false, ['ended', 'answered']]);
});

test('an answer is not cancelled on the backend', () => {
  let endings = '';
  const { reply } = begun(
    new Observable((subscriber) => {
      subscriber.next(RESULT);
      endings += subscriber.closed ? 'cancelled' : 'heard';
    }),
  );
  assert.equal([reply.status, endings], [200, 'heard']);
});

test('what its server asks is for its host', () => {
  const { answers, log } = begun();
  answers.next(said({ kind: 'request', method: 'roots/list', params: {}, answer: () => {} }));
  assert.equal(log, ['asks roots/list']);
});

test('failures have the id of the request, and what is our fault is told elsewhere', () => {
  const { answers, reply, log } = begun();
  answers.error(new Error('secret'));
  assert.equal([reply.message.id, String(reply.body).includes('secret')], [7, false]);
  assert.equal(log, ['ended', 'fault: secret', 'answered']);
});

test.run();

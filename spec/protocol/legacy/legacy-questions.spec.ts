// Questions of servers: ids, who answers, and the bounds.

import * as assert from 'uvu/assert';
import type { ClientReply, ServerRequest } from '../../../src/domain/client.ts';
import { LegacyQuestions } from '../../../src/protocol/legacy/legacy-call.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('legacy questions');

function setUp() {
  let last = 40;
  const replies: ClientReply[] = [];
  const question: ServerRequest = {
    kind: 'request',
    method: 'q',
    params: {},
    answer: (reply) => replies.push(reply),
  };
  const questions = new LegacyQuestions<object>(() => {
    last += 1;
    return last;
  });
  return { questions, question, replies };
}

test('are answered once, by their id and its type', () => {
  const { questions, question, replies } = setUp();
  const id = questions.add(question, undefined);
  assert.is(id, 41);
  questions.answer('41', { result: 'text' });
  questions.answer(41, { result: 'number' });
  questions.answer(41, { result: 'again' });
  assert.equal([replies, questions.size], [[{ result: 'number' }], 0]);
});

test('those of one asker can be withdrawn', () => {
  const { questions, question, replies } = setUp();
  const [one, two] = [{}, {}];
  questions.add(question, one);
  questions.add(question, two);
  questions.add(question, one);
  assert.equal(questions.withdraw(one), [41, 43]);
  questions.answer(41, { result: {} });
  assert.equal([replies, questions.has(42), questions.size], [[], true, 1]);
});

test('too many are refused', () => {
  const { questions, question, replies } = setUp();
  for (let count = 0; count < 256; count += 1) questions.add(question, undefined);
  assert.is(questions.add(question, undefined), undefined);
  assert.equal([replies.length, questions.size, 'error' in Object(replies[0])], [1, 256, true]);
});

test('they are given up after ten minutes', () => {
  const { questions, question, replies } = setUp();
  const asker = {};
  questions.add(question, asker);
  questions.add(question, asker);
  const takenBack: unknown[] = [];
  const takeBack = (...taken: unknown[]) => takenBack.push([...taken, replies.length]);
  questions.expire(Date.now() + 9 * 60_000, takeBack);
  assert.equal([questions.size, takenBack], [2, []]);
  questions.expire(Date.now() + 11 * 60_000, takeBack);
  assert.equal([questions.size, replies.length], [0, 2]);
  assert.equal(takenBack, [
    [41, asker, 0],
    [42, asker, 0],
  ]);
});

test('those outside of any call are answered when the session is over', () => {
  const { questions, question, replies } = setUp();
  questions.add(question, undefined);
  questions.add(question, {});
  questions.close();
  questions.close();
  questions.answer(41, { result: {} });
  assert.equal([questions.has(42), questions.size, replies.length], [true, 1, 1]);
  assert.is('error' in Object(replies[0]), true);
});

test.run();

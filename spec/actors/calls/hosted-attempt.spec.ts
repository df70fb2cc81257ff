// An attempt for a call of another node: what it reports of its use of capacity is what its instance counts, whenever the client
// answers the questions of the backend.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { hostedAttempt } from '../../../src/actors/calls/hosted-attempt.ts';
import type { ServerRequest } from '../../../src/domain/mcp/client.ts';
import { Harness, silent } from '../../helpers/backends/harness.ts';
import { toolCall } from '../../helpers/backends/profiles.ts';
import { collectGarbage } from '../../helpers/garbage.ts';
import { suite } from '../../helpers/suite.ts';
import { simulatedClock, simulateTime } from '../../helpers/time/simulated-time.ts';

const test = suite('attempts for other nodes');
let harness = new Harness();

test.after.each(() => harness.close());
simulateTime(test, () => {
  harness = new Harness();
});

/** Begins a call of another node that asks its client; the counts that it reports, and those of its instance. */
async function begin(onQuestion: (question: ServerRequest, leave: () => void) => void, id = 'a') {
  const ref = await harness.add(id, silent);
  let sum = 0;
  const group = harness.fleet.templates.group('t');
  const plan = { request: toolCall('write'), conversation: harness.backend(id) };
  const attempt$ = hostedAttempt(group, ref, plan, (change) => (sum += change), simulatedClock);
  const subscription = attempt$.subscribe((event) => {
    if (event.kind === 'request') onQuestion(event, () => subscription.unsubscribe());
  });
  return { exchange: harness.backend(id).last, counts: () => [sum, ref.activeCalls] };
}

const ANSWER = { result: { action: 'accept' } };

test('a question that is answered at once', async () => {
  const { exchange, counts } = await begin((question) => question.answer(ANSWER));
  exchange.ask('elicitation/create');
  assert.equal([exchange.replies, counts()], [[ANSWER], [1, 1]]);
  exchange.result();
  assert.equal(counts(), [0, 0]);
});

test('several questions at a time', async () => {
  const questions: ServerRequest[] = [];
  const { exchange, counts } = await begin((question) => questions.push(question));
  assert.equal(counts(), [1, 1]);
  for (const _ of ['first', 'second']) {
    exchange.ask('elicitation/create');
    assert.equal(counts(), [0, 0]);
  }
  questions[0]?.answer(ANSWER);
  assert.equal(counts(), [0, 0]);
  questions[1]?.answer(ANSWER);
  assert.equal(counts(), [1, 1]);
  exchange.result();
  assert.equal(counts(), [0, 0]);
});

test('a question keeps no memory besides its way back', async () => {
  const answers: ServerRequest['answer'][] = [];
  const { exchange } = await begin(({ answer }) => answers.push(answer));
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let at = 0; at < 32; at += 1)
    exchange.ask('elicitation/create', { message: Buffer.alloc(1_000_000, 'x').toString('latin1') });
  await turn();
  collectGarbage();
  const kept = process.memoryUsage().heapUsed - before;
  assert.is(answers.length, 32);
  assert.ok(kept < 8_000_000, `${kept} bytes`);
  exchange.result();
});

test('a call that ends while it is asked, or while its client is waited for', async () => {
  const leaving = await begin((_, leave) => leave());
  leaving.exchange.ask('elicitation/create');
  assert.equal([leaving.exchange.isCancelled, leaving.counts()], [true, [0, 0]]);
  const waiting = await begin(() => {}, 'b');
  waiting.exchange.ask('elicitation/create');
  waiting.exchange.result();
  assert.equal(waiting.counts(), [0, 0]);
});

test.run();

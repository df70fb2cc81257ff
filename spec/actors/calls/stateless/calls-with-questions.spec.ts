// Calls whose backend asks its client: passed on without questions, waiting and resumed, by their owner only.

import { mock } from 'node:test';
import { map, type Observable, type Subscription, take } from 'rxjs';
import * as assert from 'uvu/assert';
import { UNREAD_END_MS } from '../../../../src/actors/calls/stateless/asking-call.ts';
import { grantPrincipalId } from '../../../../src/domain/accounts/principal.ts';
import type { SourcedEvent } from '../../../../src/domain/calls/exchange.ts';
import { backendTimeout } from '../../../../src/domain/errors/backend-errors.ts';
import { asGatewayError, type GatewayError } from '../../../../src/domain/errors/errors.ts';
import { LIMITS } from '../../../../src/domain/limits.ts';
import type { ClientAnswer, ClientQuestion } from '../../../../src/domain/mcp/client.ts';
import { HeldBytes } from '../../../../src/domain/memory/held-bytes.ts';
import { systemClock } from '../../../../src/domain/time/clock.ts';
import { callsWithQuestions } from '../../../helpers/backends/calls-with-questions.ts';
import { ScriptedTransport, scriptedValue } from '../../../helpers/backends/scripted-transport.ts';
import { suite } from '../../../helpers/suite.ts';
import { simulateTime } from '../../../helpers/time/simulated-time.ts';
import { passTurns, untimedScheduler } from '../../../helpers/time/turns.ts';

const test = suite('calls with questions');
const ANN = 'ann';
const BOB = 'bob';
const METHOD = 'tools/call book';
const SHARE = LIMITS.callsAwaitingClient / 4;
const LATE = { error: { code: -32603, message: 'The client did not answer.' } };

const ACCEPTED: ClientAnswer = { result: { action: 'accept' } };

/** What one client received in one round: progress as its number, results as their value, questions as their methods. */
class Client {
  readonly received: unknown[] = [];
  asked: ClientQuestion | undefined;
  error: GatewayError | undefined;
  readonly subscription: Subscription;

  constructor(events$: Observable<SourcedEvent | ClientQuestion> | undefined) {
    if (events$ === undefined) throw new Error('there is no such call');
    this.subscription = events$.subscribe({
      next: (answer) => this.#hear(answer),
      error: (thrown: unknown) => {
        this.error = asGatewayError(thrown);
        this.received.push(this.error.code);
      },
      complete: () => this.received.push('end'),
    });
  }

  get id(): string {
    return this.asked?.id ?? 'never asked';
  }
  /** The key of a method that it was asked. */
  key(method: string): string {
    const found = [...(this.asked?.requests ?? [])].find(([, request]) => request.method === method);
    return found?.[0] ?? 'never asked';
  }

  #hear(answer: SourcedEvent | ClientQuestion): void {
    if ('kind' in answer) {
      this.asked = answer;
      this.received.push([...answer.requests.values()].map(({ method }) => method).join());
    } else if (answer.event.kind === 'notification') this.received.push(answer.event.params.progress);
    else if (answer.event.kind === 'result') this.received.push(scriptedValue(answer.event.result));
    else this.received.push(answer.event.kind);
  }
}

let calls = callsWithQuestions();
let backend = new ScriptedTransport();

simulateTime(test, () => {
  calls = callsWithQuestions();
  backend = new ScriptedTransport();
});
test.after.each(() => calls.close());

/** One exchange with instance `a`. */
function answers(): Observable<SourcedEvent> {
  const event$ = backend.exchange({ method: 'tools/call' });
  return event$.pipe(map((event) => ({ event, instanceId: 'a', serverId: 'a' })));
}

test('a call without questions is passed on, and does not wait', () => {
  const client = new Client(calls.follow(ANN, METHOD, answers()));
  progress(1);
  backend.last.result('done');
  assert.equal([client.received, calls.size], [[1, 'done', 'end'], 0]);
});

test('questions and results that wait for clients are bounded in bytes, per owner', () => {
  const held = new HeldBytes({ totalBytes: 100_000, ownerBytes: 50_000 }, systemClock.now);
  calls = callsWithQuestions(untimedScheduler(), held);
  const asking = (values: number) => {
    const client = new Client(calls.follow(ANN, METHOD, answers()));
    const exchange = backend.last;
    exchange.ask('elicitation/create', { list: Array(values).fill({}) });
    mock.timers.tick(50);
    return { client, exchange };
  };
  const [first, second] = [asking(300), asking(100)];
  assert.equal(
    [first.client.received, second.client.received, calls.size],
    [
      ...[
        ['elicitation/create', 'end'],
        ['elicitation/create', 'end'],
      ],
      2,
    ],
  );
  const third = asking(300);
  assert.equal([first.exchange.isCancelled, second.exchange.isCancelled, calls.size], [true, false, 2]);
  third.exchange.result('x'.repeat(35_000));
  assert.ok(held.bytes >= 35_000);
  const tooLarge = asking(1_000);
  assert.equal([tooLarge.client.received, held.bytes], [['BACKEND_UNAVAILABLE'], 0]);
  calls.close();
  assert.is(held.bytes, 0);
});

test('asks the client, and continues with its answer', () => {
  const first = ask('elicitation/create');
  assert.equal(first.received, ['elicitation/create', 'end']);
  assert.is(backend.last.isCancelled, false);
  const second = new Client(calls.resume(first.id, ANN, METHOD, replies(first.key('elicitation/create'))));
  assert.equal(backend.last.replies, [ACCEPTED]);
  progress(2);
  backend.last.result('done');
  assert.equal([second.received, calls.size, backend.last.isCancelled], [[2, 'done', 'end'], 0, false]);
});

test('asks questions that come within 50 ms together, and passes on notifications meanwhile', () => {
  const client = new Client(calls.follow(ANN, METHOD, answers()));
  backend.last.ask('roots/list');
  progress(1);
  mock.timers.tick(49);
  backend.last.ask('sampling/createMessage');
  mock.timers.tick(1);
  assert.equal(client.received, [1, 'roots/list,sampling/createMessage', 'end']);
});

test('keeps the last 64 notifications of a waiting call', () => {
  const first = ask('roots/list');
  for (let n = 0; n < 100; n += 1) progress(n);
  const second = new Client(calls.resume(first.id, ANN, METHOD, new Map()));
  assert.equal([second.received.length, second.received[0], second.received.at(-1)], [64, 36, 99]);
});

test('keeps the result of a backend that did not wait for replies, until it is fetched', () => {
  const first = ask('roots/list');
  progress(1);
  backend.last.result('done');
  assert.is(calls.size, 1);
  const second = new Client(calls.resume(first.id, ANN, METHOD, replies(first.key('roots/list'))));
  assert.equal([second.received, calls.size, backend.last.replies], [[1, 'done', 'end'], 0, [LATE]]);
});

for (const [how, end, received] of [
  ['was answered by its backend', () => backend.last.result('done'), ['done', 'end']],
  ['failed with its backend', () => backend.disconnect(), ['BACKEND_UNAVAILABLE']],
] as const) {
  test(`a call that ${how} meanwhile does not count as one that waits, and its end is kept`, async () => {
    const ended: Client[] = [];
    for (let n = 0; n < 2 * SHARE; n += 1) {
      backend = new ScriptedTransport();
      ended.push(ask('roots/list'));
      end();
      await passTurns(1);
    }
    const fetch = (n: number) => calls.resume(ended[n]?.id ?? '', ANN, METHOD, new Map());
    assert.equal([calls.size, fetch(SHARE - 1)], [SHARE, undefined], 'the oldest were given up');
    for (let n = SHARE; n < 2 * SHARE; n += 1) assert.equal(new Client(fetch(n)).received, received);
    assert.equal([calls.size, [...calls.owners]], [0, []]);
  });
}

test('of the kept ends of several clients of one user the oldest is given up, too', async () => {
  const ended: Client[] = [];
  for (let n = 0; n <= SHARE; n += 1) {
    ended.push(askFor(grantPrincipalId(`${n}`, 'ann')));
    mock.timers.tick(50);
    backend.last.result('done');
    await passTurns(1);
  }
  const oldest = calls.resume(ended[0]?.id ?? '', grantPrincipalId('0', 'ann'), METHOD, new Map());
  assert.equal([calls.size, oldest], [SHARE, undefined]);
});

test('asks in the next round what the backend asked while the call waited', () => {
  const first = ask('roots/list');
  backend.last.ask('sampling/createMessage');
  const second = new Client(calls.resume(first.id, ANN, METHOD, replies(first.key('roots/list'))));
  mock.timers.tick(50);
  assert.equal(second.received, ['sampling/createMessage', 'end']);
});

test('a call is resumed once, by its owner and under its name; other attempts have no effect', () => {
  const first = ask('roots/list');
  const all = replies(first.key('roots/list'));
  assert.is(calls.resume(first.id, BOB, METHOD, all), undefined);
  assert.is(calls.resume(first.id, ANN, 'tools/call other', all), undefined);
  assert.is(calls.resume('no such id', ANN, METHOD, all), undefined);
  assert.equal(backend.last.replies, []);
  const second = new Client(calls.resume(first.id, ANN, METHOD, all));
  assert.is(calls.resume(first.id, ANN, METHOD, all), undefined);
  backend.last.result('done');
  assert.is(calls.resume(first.id, ANN, METHOD, all), undefined);
  assert.equal([second.received, backend.last.replies.length], [['done', 'end'], 1]);
});

test('cancels the exchange when its client leaves in the middle of a round', () => {
  const asking = new Client(calls.follow(ANN, METHOD, answers()));
  backend.last.ask('roots/list');
  asking.subscription.unsubscribe();
  assert.equal([backend.last.isCancelled, backend.last.replies, calls.size], [true, [LATE], 0]);
  const first = ask('roots/list');
  const second = new Client(calls.resume(first.id, ANN, METHOD, replies(first.key('roots/list'))));
  assert.is(backend.last.isCancelled, false);
  second.subscription.unsubscribe();
  assert.equal([backend.last.isCancelled, calls.size], [true, 0]);
});

test('keeps the end of a call whose client does not return, and answers the backend first', () => {
  ask('roots/list');
  mock.timers.tick(2 * UNREAD_END_MS);
  assert.equal([backend.last.isCancelled, calls.size], [false, 1]); // its deadline would end it
  backend.last.fail(backendTimeout(1));
  assert.equal([backend.last.replies, calls.size], [[LATE], 1]);
  mock.timers.tick(UNREAD_END_MS - 1);
  assert.is(calls.size, 1);
  mock.timers.tick(1);
  assert.is(calls.size, 0);
});

test('refuses a call above the limit with QUEUE_FULL, and keeps the others', () => {
  for (let n = 0; n < LIMITS.callsAwaitingClient; n += 1) askFor(`owner ${n % 4}`);
  const last = backend.last;
  const refused = askFor('ann');
  assert.equal(refused.received, ['QUEUE_FULL']);
  assert.equal([backend.last.isCancelled, backend.last.replies], [true, [LATE]]);
  assert.equal([last.isCancelled, calls.size], [false, LIMITS.callsAwaitingClient]);
});

test('lets at most a quarter of the limit wait for one owner, unless callers are anonymous', () => {
  const [first] = Array.from({ length: SHARE }, () => askFor('ann'));
  assert.equal([askFor('ann').received, askFor('bob').received], [['QUEUE_FULL'], []]);
  assert.is(calls.size, SHARE + 1);
  mock.timers.tick(100);
  new Client(calls.resume(first?.id ?? '', ANN, METHOD, new Map())).subscription.unsubscribe();
  askFor('ann');
  assert.is(calls.size, SHARE + 1);
  for (let n = 0; n <= SHARE; n += 1) assert.equal(askFor('anonymous').received, []);
});

test('ends the calls of one owner, and no others', () => {
  const client = grantPrincipalId('1', 'ann'); // of ann
  for (const ownerId of [client, 'ann']) askFor(ownerId);
  const theirs = backend.last;
  askFor('bob');
  assert.equal([...calls.owners], [client, 'ann', 'bob']);
  calls.endOf(client);
  calls.endOf('ann');
  assert.equal([theirs.isCancelled, backend.last.isCancelled, calls.size], [true, false, 1]);
  assert.equal([...calls.owners], ['bob']);
});

test('a resumed call fails when the calls of its owner are ended, or the gateway closes', () => {
  for (const end of [() => calls.endOf('ann'), () => calls.close()]) {
    const first = ask('roots/list');
    const second = new Client(calls.resume(first.id, ANN, METHOD, replies(first.key('roots/list'))));
    end();
    assert.equal([second.received, backend.last.isCancelled, calls.size], [['BACKEND_UNAVAILABLE'], true, 0]);
    assert.is(second.error?.delivered, 'unknown');
  }
});

test('once calls are dismissed, those that wait end, and others when they would begin to wait', async () => {
  const waiting = ask('elicitation/create');
  const asking = new Client(calls.follow(ANN, METHOD, answers()));
  backend.last.ask('elicitation/create');
  const running = new Client(calls.follow(ANN, METHOD, answers()));
  await calls.dismiss();
  assert.is(calls.resume(waiting.id, ANN, METHOD, new Map()), undefined);
  mock.timers.tick(50);
  assert.equal(asking.received, ['BACKEND_UNAVAILABLE']);
  backend.last.ask('sampling/createMessage');
  mock.timers.tick(50);
  assert.equal([running.received, calls.size], [['BACKEND_UNAVAILABLE'], 0]);
});

test('a call whose client leaves at the first kept notification ends, and its replies are not sent', () => {
  const first = ask('roots/list');
  progress(1);
  calls
    .resume(first.id, ANN, METHOD, replies(first.key('roots/list')))
    ?.pipe(take(1))
    .subscribe();
  assert.equal([calls.size, backend.last.isCancelled, backend.last.replies], [0, true, [LATE]]);
});

test('passes on at most 64 open questions of a call, and refuses others', () => {
  const client = ask(...Array.from({ length: 66 }, () => 'roots/list'));
  assert.equal([backend.last.replies.length, backend.last.replies[0]], [2, LATE]);
  assert.is(client.asked?.requests.size, 64);
});

test('a resumed call does not expire while it runs, and may ask again', () => {
  const first = ask('roots/list');
  mock.timers.tick(UNREAD_END_MS - 1);
  const second = new Client(calls.resume(first.id, ANN, METHOD, replies(first.key('roots/list'))));
  mock.timers.tick(2 * UNREAD_END_MS);
  assert.equal([backend.last.isCancelled, second.received], [false, []]);
  backend.last.ask('sampling/createMessage');
  mock.timers.tick(50);
  assert.equal(second.received, ['sampling/createMessage', 'end']);
});

test.run();

/** The backend reports progress. */
function progress(n: number): void {
  backend.last.notify('notifications/progress', { progress: n });
}

/** A call of ann's that waits for answers to these. */
function ask(...methods: string[]): Client {
  const client = new Client(calls.follow(ANN, METHOD, answers()));
  for (const method of methods) backend.last.ask(method);
  mock.timers.tick(50);
  return client;
}

/** One more call of that owner whose backend asks something. */
function askFor(ownerId: string): Client {
  const client = new Client(calls.follow(ownerId, METHOD, answers()));
  backend.last.ask('roots/list');
  return client;
}

function replies(...keys: string[]): ReadonlyMap<string, ClientAnswer> {
  return new Map(keys.map((key) => [key, ACCEPTED]));
}

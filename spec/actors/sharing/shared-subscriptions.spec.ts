// One backend, several clients: it hears of a resource once, in order, and of nothing that nobody wants.

import { mock } from 'node:test';
import { BehaviorSubject } from 'rxjs';
import * as assert from 'uvu/assert';
import {
  type SharedConversation,
  SharedSubscriptions,
} from '../../../src/actors/sharing/shared-subscriptions.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import { asGatewayError } from '../../../src/domain/errors.ts';
import type { ExchangeRequest, FinalEvent } from '../../../src/domain/exchange.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { settled } from '../instances/instance-harness.ts';

const test = suite('shared subscriptions');

/** A conversation that goes down and comes back as the spec says. */
class Conversation implements SharedConversation {
  transport = new ScriptedTransport();
  peer: Peer | undefined = this.transport.peer;
  readonly state$ = new BehaviorSubject('healthy');

  exchange(request: ExchangeRequest) {
    return this.transport.exchange(request);
  }
  down(): void {
    this.peer = undefined;
    this.transport.lose();
    this.state$.next('unhealthy');
  }
  up(): void {
    this.transport = new ScriptedTransport();
    this.peer = this.transport.peer;
    this.state$.next('healthy');
  }
  get heard(): string[] {
    return this.transport.exchanges.map(
      ({ request: { method, params } }) => `${method.replace('resources/', '')} ${params?.uri}`,
    );
  }
}

let shared = new SharedSubscriptions();
let one = new Conversation();

test.before.each(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  shared = new SharedSubscriptions();
  one = new Conversation();
});
test.after.each(() => mock.timers.reset());

test('subscribes once for all, and unsubscribes behind the last', async () => {
  const first = shared.subscribe(one, 'x:1');
  const second = shared.subscribe(one, 'x:1');
  one.transport.last.result({ n: 1 });
  const third = shared.subscribe(one, 'x:1');
  assert.equal(await kinds(first.answer, second.answer, third.answer), ['result', 'result', 'result']);
  first.release();
  first.release();
  second.release();
  assert.equal(one.heard, ['subscribe x:1']);
  third.release();
  assert.equal(one.heard, ['subscribe x:1', 'unsubscribe x:1']);
  one.transport.last.result();
  assert.is(shared.size, 0);
  assert.is(one.state$.observed, false);
});

test('reports a refusal to all, unsubscribes nothing, and asks again after a restart', async () => {
  const first = shared.subscribe(one, 'x:1');
  one.transport.last.refuse(-32601);
  const second = shared.subscribe(one, 'x:1');
  assert.equal(await kinds(first.answer, second.answer), ['error', 'error']);
  one.down();
  one.up();
  assert.equal(one.heard, ['subscribe x:1']);
  one.transport.last.refuse(-32601);
  first.release();
  second.release();
  assert.equal([one.heard, shared.size], [['subscribe x:1'], 0]);
});

test('rejects without a connection, and asks as soon as there is one', async () => {
  one.down();
  const part = shared.subscribe(one, 'x:1');
  assert.is(await failure(part.answer), 'BACKEND_UNAVAILABLE no');
  one.up();
  assert.equal(one.heard, ['subscribe x:1']);
  part.release();
  one.transport.last.result();
  assert.equal(one.heard, ['subscribe x:1', 'unsubscribe x:1']);
});

test('tries again after a while when a request failed on its way', async () => {
  const part = shared.subscribe(one, 'x:1');
  one.transport.last.fail(backendUnavailable('it broke', { delivered: 'unknown' }));
  assert.is(await failure(part.answer), 'BACKEND_UNAVAILABLE unknown');
  mock.timers.tick(4_999);
  assert.is(one.heard.length, 1);
  mock.timers.tick(1);
  assert.is(one.heard.length, 2);
  part.release();
  one.transport.last.fail(backendUnavailable('it broke', { delivered: 'unknown' }));
  assert.is(shared.size, 0);
  mock.timers.tick(60_000);
  assert.is(one.heard.length, 2);
});

test('waits for an answer for half a minute, and cancels then', async () => {
  const part = shared.subscribe(one, 'x:1');
  mock.timers.tick(30_000);
  assert.is(await failure(part.answer), 'BACKEND_TIMEOUT unknown');
  assert.is(one.transport.last.isCancelled, true);
  part.release();
  assert.is(shared.size, 0);
});

test('survives a conversation that completes without an answer, or throws', async () => {
  const part = shared.subscribe(one, 'x:1');
  one.transport.last.complete();
  assert.is(await failure(part.answer), 'BACKEND_TIMEOUT unknown');
  one.transport.thrownByExchange = new Error('a fault');
  mock.timers.tick(5_000);
  one.transport.thrownByExchange = undefined;
  mock.timers.tick(5_000);
  assert.equal(one.heard, ['subscribe x:1', 'subscribe x:1']);
});

test('ends with the conversation', async () => {
  const asked = shared.subscribe(one, 'x:1');
  const request = one.transport.last;
  one.state$.complete();
  assert.is(await failure(asked.answer), 'BACKEND_UNAVAILABLE no');
  assert.is(request.isCancelled, true);
  assert.is(await failure(shared.subscribe(one, 'x:1').answer), 'BACKEND_UNAVAILABLE no');
  asked.release();
  assert.equal([shared.size, one.heard.length], [0, 1]);
});

test('has a bound of resources', async () => {
  for (let n = 0; n < 10_000; n += 1) shared.subscribe(one, `x:${n}`);
  assert.is(await failure(shared.subscribe(one, 'x:more').answer), 'BACKEND_UNAVAILABLE no');
  assert.is(one.heard.length, 10_000);
});

test.run();

async function kinds(...promises: Promise<FinalEvent>[]): Promise<string[]> {
  return (await Promise.all(promises)).map(({ kind }) => kind);
}

async function failure(promise: Promise<FinalEvent>): Promise<string> {
  await settled();
  return promise.then(
    () => 'answered',
    (thrown: unknown) => {
      const { code, delivered } = asGatewayError(thrown);
      return `${code} ${delivered}`;
    },
  );
}

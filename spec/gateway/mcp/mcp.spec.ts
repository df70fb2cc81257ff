// The endpoint as a gateway puts it together, over functions as backends: one template, all of them, sessions and their
// end. What clients of each era see in detail is in spec/protocol and in the journeys.

import { setImmediate as turn } from 'node:timers/promises';
import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { serving, text } from '../../helpers/backends/function-backend.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { begin, initialize, modernRequest, openSession, postTo, send } from './post.ts';

const test = suite('mcp endpoint of a gateway');
let gateway: Gateway;
let faults: unknown[];
let random: () => number;
let changedCallers$: Subject<string>;
/** Ends the calls of `wait`. */
let released: PromiseWithResolvers<void>;
test.before.each(async () => {
  faults = [];
  random = Math.random;
  changedCallers$ = new Subject();
  released = Promise.withResolvers();
  const onFault = (error: unknown) => {
    faults.push(error);
    throw new Error('the log is full, which affects no answer');
  };
  gateway = await createGateway({ sessions: { max: 2 }, onFault, changedCallers$, random: () => random() });
  for (const template of ['a', 'b']) {
    const handler = serving({
      read: () => text(`read by ${template}`),
      wait: async () => {
        await released.promise;
        return text('waited');
      },
    });
    await gateway.register(template, { handler, id: 'one' }, { waitMs: 5_000 });
  }
});
test.after.each(() => gateway.close({ graceMs: 0 }));

/** One POST; its status, and the message that answers it. */
const post = (
  template: string | undefined,
  message: JsonObject,
  headers: object = {},
  principal: Principal = ANONYMOUS,
) => postTo(gateway, { template, message, headers, principal });

const call = (name: string) => ({ method: 'tools/call', params: { name } });
const modern = (name: string) => modernRequest('tools/call', { name });

test('opens at most as many sessions as configured', async () => {
  await openSession(gateway, 'a');
  await openSession(gateway, 'b');
  const { status, answer } = await post('a', initialize());
  assert.is(status, 503);
  assert.match(JSON.stringify(answer), 'SESSION_LIMIT');
});

test('limits one caller to its share of sessions, at a template and at /mcp, and leaves the rest to others', async () => {
  await gateway.close({ graceMs: 0 });
  gateway = await createGateway({ sessions: { max: 20, share: 0.45 } });
  await gateway.register('a', { handler: serving({ read: () => text('read') }) }, { waitMs: 5_000 });
  const open = (template: string | undefined, id: string) =>
    post(template, initialize(), {}, { ...ANONYMOUS, id });
  for (const template of ['a', undefined]) {
    for (let count = 0; count < 9; count += 1) assert.is((await open(template, 'user:ann')).status, 200);
    const { status, answer } = await open(template, 'user:ann');
    assert.is(status, 503);
    assert.match(JSON.stringify(answer), 'This caller has too many open sessions (9;');
    assert.is((await open(template, 'user:bob')).status, 200);
  }
});

test('finishes the calls of a deleted template, and answers 404 from then on', async () => {
  const [one, joined] = [await openSession(gateway, 'a'), await openSession(gateway, undefined)];
  const under = [post('a', call('wait'), one), post(undefined, call('a__wait'), joined)];
  for (let turns = 0; turns < 50; turns += 1) await turn();
  await gateway.deregister('a', 'one');
  await gateway.deleteTemplate('a');
  assert.is((await post('a', call('read'), one)).status, 404);
  assert.match(JSON.stringify((await post(undefined, call('a__read'), joined)).answer), 'error');
  released.resolve();
  for (const { answer } of await Promise.all(under)) assert.equal(answer.result, text('waited'));
  const { answer } = await post(undefined, { method: 'tools/list' }, joined);
  assert.not.match(JSON.stringify(answer), 'a__');
  assert.is((await post('a', initialize())).status, 404);
  await gateway.register('a', { handler: serving({ read: () => text('new') }) }, { waitMs: 5_000 });
  const { message, headers } = modern('read');
  assert.match(JSON.stringify((await post('a', message, headers)).answer), '"new"');
  assert.equal(faults, []);
});

test('the sessions with a deleted template end, and one with a call under way after the call', async () => {
  const [unused, used] = [await openSession(gateway, 'a'), await openSession(gateway, 'a')];
  const streams = [unused, used].map((headers) => begin(gateway, 'GET', { template: 'a', headers }).reply);
  const waiting = post('a', call('wait'), used);
  await until(() => gateway.stats().activeConnections > 0);
  await gateway.deregister('a', 'one');
  await gateway.deleteTemplate('a');
  const ended = () => streams.map(({ opened }) => opened?.isEnded);
  await until(() => ended()[0] === true);
  assert.equal([ended(), gateway.sessions().length], [[true, false], 1]);
  released.resolve();
  assert.equal((await waiting).answer.result, text('waited'));
  await until(() => ended()[1] === true);
  assert.equal([...gateway.openCallers()], []);
  assert.equal(faults, []);
});

test('a session with all templates continues when one with a template may not move', async () => {
  const handler = serving({
    read: () => text('read'),
    wait: () => released.promise.then(() => text('waited')),
  });
  const loadBalancer = { session_failover: 'never' } as const;
  for (const id of ['one', 'two'])
    await gateway.register('c', { id, handler }, { waitMs: 5_000, loadBalancer });
  const joined = await openSession(gateway, undefined);
  const read = () => post(undefined, call('c__read'), joined);
  const waiting = post(undefined, { id: 2, ...call('c__wait') }, joined);
  await until(() => gateway.stats().activeConnections !== 0);
  const before = await read();
  gateway.drain('c', String(before.instanceId?.split('/')[1]));
  const after = await read();
  assert.equal([after.status, after.answer.result], [200, text('read')]);
  assert.is.not(after.instanceId, before.instanceId);
  released.resolve();
  assert.is((await waiting).status, 200);
});

test('reports an internal error, which no client sees, to the operator', async () => {
  const defect = new RangeError('a defect of the gateway');
  random = () => {
    throw defect;
  };
  const options = { loadBalancer: { strategy: 'random' }, waitMs: 5_000 } as const;
  for (const id of ['one', 'two'])
    await gateway.register('c', { handler: serving({ read: () => text('') }), id }, options);
  const { message, headers } = modern('read');
  const { answer } = await post('c', message, headers);
  assert.is(Object(answer.error).code, -32603);
  assert.not.match(JSON.stringify(answer), 'a defect');
  const causes = faults.map((fault) => Object(fault).cause);
  assert.equal(causes, [defect]);
});

test('ends sessions and refuses new ones when the gateway closes', async () => {
  const session = await openSession(gateway, 'a');
  await gateway.close({ graceMs: 0 });
  assert.is.not((await post('a', call('read'), session)).status, 200);
  assert.is((await post('a', initialize())).status, 503);
});

/** Until a call is under way. */
async function busy() {
  await until(() => gateway.stats().activeConnections !== 0);
}

test('the end of a session does not cancel a list that another session of its owner waits for', async () => {
  let lists = 0;
  const handler: InProcessHandler = async ({ method }) => {
    if (method !== 'prompts/list') return { tools: [] };
    lists += 1;
    await released.promise;
    return { prompts: [] };
  };
  await gateway.register('c', { handler, id: 'one' }, { waitMs: 5_000 });
  const [left, kept] = [await openSession(gateway, 'c'), await openSession(gateway, 'c')];
  const answers = [left, kept].map((session) => post('c', { method: 'prompts/list' }, session));
  await busy();
  assert.is(lists, 1);
  await send(gateway, 'DELETE', { template: 'c', headers: left });
  released.resolve();
  const [refused, listed] = await Promise.all(answers);
  assert.is(refused?.status, 404);
  assert.equal([listed?.status, listed?.answer.result], [200, { prompts: [] }]);
});

for (const template of ['a', undefined])
  test(`a call that ends with its session at ${template ?? '/mcp'} may have been carried out`, async () => {
    const session = await openSession(gateway, template);
    const answer = post(template, call(template === undefined ? 'a__wait' : 'wait'), session);
    await busy();
    await send(gateway, 'DELETE', { template, headers: session });
    const { status, answer: answered } = await answer;
    const { error_code: code, delivered } = Object(answered.error).data;
    assert.equal([status, code, delivered], [404, 'SESSION_NOT_FOUND', 'unknown']);
  });

for (const [what, template, name] of [
  ['a session with a template', 'a', 'wait'],
  ['a session with all of them', undefined, 'a__wait'],
  ['no session', 'a', undefined],
] as const) {
  const begin = async () => {
    const { message, headers } = modern('wait');
    const answer =
      name === undefined
        ? post('a', message, headers)
        : post(template, call(name), await openSession(gateway, template));
    await busy();
    return { answer };
  };

  for (const graceMs of [0, 20])
    test(`a call of ${what} that is cut off after ${graceMs} ms may have been carried out`, async () => {
      const { answer } = await begin();
      await gateway.close({ graceMs });
      const { status, answer: answered } = await answer;
      const { error_code: code, delivered } = Object(answered.error).data;
      const expected = name === undefined ? 503 : 200;
      assert.equal([status, code, delivered], [expected, 'BACKEND_UNAVAILABLE', 'unknown']);
    });

  test(`lets a call of ${what} finish when the gateway closes`, async () => {
    const { answer } = await begin();
    const closed = gateway.close({ graceMs: 5_000 });
    await turn();
    assert.is((await post(template, initialize())).status, 503);
    released.resolve();
    assert.equal(Object((await answer).answer.result).content, text('waited').content);
    await closed;
  });
}

test('ends the sessions of a caller whose permissions changed, and no others', async () => {
  const [one, joined] = [await openSession(gateway, 'a'), await openSession(gateway, undefined)];
  assert.equal([...gateway.openCallers()], [ANONYMOUS.id]);
  changedCallers$.next('user:another');
  assert.is((await post('a', call('read'), one)).status, 200);
  changedCallers$.next(ANONYMOUS.id);
  await until(() => [...gateway.openCallers()].length === 0);
  assert.is((await post('a', call('read'), one)).status, 404);
  assert.is((await post(undefined, call('a__read'), joined)).status, 404);
  assert.equal([...gateway.openCallers()], []);
  assert.equal(faults, []);
});

test.run();

// A legacy client at a backend of the modern era: the metadata of its requests, and the rounds of questions during a call.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { ExchangeRequest, SourcedEvent } from '../../../src/domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../../src/domain/calls/exchange-event.ts';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import { type JsonObject, parseExact } from '../../../src/domain/json/json.ts';
import type { ClientProfile } from '../../../src/domain/mcp/client.ts';
import { META } from '../../../src/domain/mcp/mcp.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { exchangeInSession } from '../../../src/protocol/legacy/legacy-over-modern.ts';
import { suite } from '../../helpers/suite.ts';
import { HANDSHAKE, SessionBackends } from '../scripted-backends.ts';

const test = suite('legacy over modern');
const CALL: ExchangeRequest = { method: 'tools/call', params: { name: 'add', arguments: { a: 1 } } };
const QUESTION = { method: 'elicitation/create', params: { message: 'name?', requestedSchema: {} } };

test.before.each(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.after.each(() => mock.timers.reset());

/** A session with a modern backend, and what its client receives. */
function modern(
  profile: Partial<ClientProfile> = { capabilities: { elicitation: {}, sampling: {}, roots: {} } },
) {
  const backends = new SessionBackends();
  backends.handshake = { ...HANDSHAKE, era: 'modern', protocolVersion: '2026-07-28' };
  const session = backends.add('one', 'ann', profile);
  const events: (ExchangeEvent | 'end')[] = [];
  const failures: unknown[] = [];
  const run = (request: ExchangeRequest = CALL) =>
    exchangeInSession(session, request, systemClock).subscribe({
      next: ({ event }: SourcedEvent) => events.push(event),
      error: (thrown: unknown) => failures.push(thrown),
      complete: () => events.push('end'),
    });
  const asked = () => events.filter((event) => event !== 'end').filter(({ kind }) => kind === 'request');
  return {
    backends,
    session,
    events,
    failures,
    run,
    /** The questions that the client got, oldest first. */
    questions: () => asked().map((event) => (event.kind === 'request' ? [event.method, event.params] : [])),
    answer: (index: number, ...reply: Parameters<Extract<ExchangeEvent, { kind: 'request' }>['answer']>) => {
      const event = asked()[index];
      if (event?.kind === 'request') event.answer(...reply);
    },
    /** The backend requires input. */
    require: (inputRequests: JsonObject | undefined, requestState?: string) =>
      session.last.result(JSON.stringify({ resultType: 'input_required', inputRequests, requestState })),
    /** The last result, and whether it ended the call. */
    end: () => {
      const [last, end] = events.slice(-2);
      if (last === undefined || last === 'end' || end !== 'end') return undefined;
      if (last.kind === 'result') return last.result.value;
      return last.kind === 'error' ? last.error : undefined;
    },
  };
}

const failed = (text: string) => ({ content: [{ type: 'text', text }], isError: true });

test('a modern backend gets client info and capabilities', () => {
  const { run, session } = modern({ capabilities: { roots: {} }, clientInfo: { name: 'c', version: '1' } });
  session.logLevel = 'debug';
  run({ method: 'tools/list', params: { _meta: { progressToken: 7 } } });
  assert.equal(session.last.request, {
    method: 'tools/list',
    params: {
      _meta: {
        progressToken: 7,
        [META.clientCapabilities]: { roots: {} },
        [META.clientInfo]: { name: 'c', version: '1' },
        [META.logLevel]: 'debug',
      },
    },
  });
});

test('a question goes to the client, and its answer into the next round', () => {
  const { run, session, require, questions, answer, end } = modern();
  run();
  require({ user: QUESTION }, 'sealed');
  assert.equal(questions(), [['elicitation/create', QUESTION.params]]);
  answer(0, { result: { action: 'accept', content: { name: 'Ann' } } });
  assert.is(session.exchanges.length, 2);
  const { _meta: _, ...params } = session.last.request.params ?? {};
  assert.equal(params, {
    name: 'add',
    arguments: { a: 1 },
    requestState: 'sealed',
    inputResponses: { user: { action: 'accept', content: { name: 'Ann' } } },
  });
  session.last.result('{"done":true}');
  assert.equal(end(), { done: true });
});

test('questions and answers keep numbers that JavaScript would change', () => {
  const { run, session, events, answer } = modern();
  run();
  const params =
    '{"message":"which?","requestedSchema":{"properties":{"id":{"default":12345678901234567890}}}}';
  const asked = `{"a":{"method":"elicitation/create","params":${params}}}`;
  session.last.result(`{"resultType":"input_required","inputRequests":${asked}}`);
  const [question] = events;
  assert.ok(question !== undefined && question !== 'end' && question.kind === 'request');
  assert.is(JSON.stringify(question.params), params);
  const content = '{"action":"accept","content":{"id":9007199254740993}}';
  answer(0, { result: parseExact(content) as JsonObject });
  assert.is(JSON.stringify(session.last.request.params?.inputResponses), `{"a":${content}}`);
});

test('a result has no fields that only the modern era defines, and keeps all other bytes', () => {
  const info = '"io.modelcontextprotocol/serverInfo"';
  for (const [written, expected] of [
    ['{"content":[],"resultType":"complete"}', '{"content":[]}'],
    ['{"resultType":"complete","ttlMs":0,"cacheScope":"private"}', '{}'],
    [
      `{ "ttlMs" : 1 , "tools" : [ { "ttlMs" : 2 } ] , "n":12345678901234567890,"_meta":{${info}:{"a":"}"}} }`,
      '{"tools" : [ { "ttlMs" : 2 } ] , "n":12345678901234567890}',
    ],
    [`{"_meta":{"a":1,${info}:{},"b":2},"resultType":"complete","x":1}`, '{"_meta":{"a":1,"b":2},"x":1}'],
    [`{"a":1,"_meta":{"x":${info}},"b":2}`, undefined],
    ['{"_meta":{},"structuredContent":{"resultType":"complete"}}', undefined],
    ['{"resultType":"task","taskId":"1","ttlMs":5}', undefined],
    ['[1,{"resultType":"complete"}]', undefined],
    ['{}', undefined],
  ] as const) {
    for (const method of ['tools/call', 'tools/list']) {
      const { run, session, events } = modern();
      run({ method });
      session.last.result(written);
      const [event] = events;
      assert.ok(event !== undefined && event !== 'end' && event.kind === 'result');
      assert.is(event.result.text, expected ?? written);
    }
  }
});

test('the memory of replies is counted until the call ends', () => {
  for (const isCancelled of [false, true]) {
    const { run, session, require, answer } = modern();
    let held = 0;
    const hold = () => {
      held += 1;
      return () => {
        held -= 1;
      };
    };
    const call = run();
    require({ a: QUESTION, b: QUESTION });
    answer(0, { result: {} }, hold);
    answer(0, { result: {} }, hold);
    assert.is(held, 1);
    if (isCancelled) call.unsubscribe();
    else {
      answer(1, { result: {} }, hold);
      assert.is(held, 2);
      session.last.result('{}');
    }
    assert.is(held, 0);
  }
});

test('several questions are asked at once and answered together', () => {
  const { run, session, require, questions, answer } = modern();
  run();
  const sampling = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } };
  require({ a: QUESTION, b: sampling, c: { method: 'roots/list' } });
  assert.is(questions().length, 3);
  answer(2, { result: { roots: [] } });
  answer(0, { result: 0 });
  answer(0, { result: 'twice' });
  assert.is(session.exchanges.length, 1);
  answer(1, { result: 1 });
  assert.equal(session.last.request.params?.inputResponses, { a: 0, b: 1, c: { roots: [] } });
});

test('all rounds of a call stay at the instance of its first answer', () => {
  const { run, session, require, answer } = modern();
  run();
  assert.equal(session.reservations, [], 'a call without questions needs no reservation');
  require({ a: QUESTION }, 'first');
  assert.equal(session.reservations, ['one']);
  answer(0, { result: 1 });
  require({ b: QUESTION });
  assert.equal(session.reservations, ['one']);
  answer(1, { result: 2 });
  const { requestState, inputResponses } = session.last.request.params ?? {};
  assert.equal([requestState, inputResponses], [undefined, { b: 2 }], 'of its own round only');
  session.last.result('{}');
  assert.equal(session.reservations, []);
});

test('state without questions leads to another round after a moment, with a new deadline', () => {
  const { run, session, require } = modern();
  run({ ...CALL, arrivedAtMs: 1 });
  assert.is(session.last.request.arrivedAtMs, 1);
  require(undefined, 'state');
  assert.is(session.exchanges.length, 1);
  mock.timers.tick(250);
  const { requestState, inputResponses } = session.last.request.params ?? {};
  assert.equal([session.exchanges.length, requestState, inputResponses], [2, 'state', undefined]);
  assert.is('arrivedAtMs' in session.last.request, false);
});

test('a client without the capability gets a result with the reason', () => {
  const { run, session, require, questions, end } = modern({ capabilities: { elicitation: {} } });
  run();
  require({ a: QUESTION, b: { method: 'roots/list' } });
  assert.equal(questions(), []);
  const why = 'the client did not declare the required capability';
  assert.equal(end(), failed(`Cannot request input 'b' (roots/list): ${why}.`));
  assert.is(session.exchanges.length, 1);
});

test('a client that does not answer ends the call', () => {
  const { run, require, end, session } = modern();
  session.questionMs = 20 * 60_000;
  run();
  require({ a: QUESTION });
  mock.timers.tick(20 * 60_000 - 1);
  assert.is(end(), undefined);
  mock.timers.tick(1);
  const why = 'the client did not answer in time';
  assert.equal(end(), failed(`Fulfilling input required by 'tools/call' failed: ${why}`));
});

test('a call ends with an error result after eight rounds', () => {
  const { run, session, require, answer, end } = modern();
  run();
  for (let round = 0; round < 9; round += 1) {
    require({ a: QUESTION });
    answer(round, { result: round });
  }
  assert.is(session.exchanges.length, 9);
  assert.equal(end(), failed("'tools/call' still required input after 8 rounds."));
});

test('an invalid question of the server ends the call with -32603', () => {
  const { run, require, end } = modern();
  run();
  require({ a: { method: 'elicitation/create' } });
  assert.is(Object(end()).code, -32603);
});

test('a call cancelled between two rounds leaves no request and no reservation', () => {
  for (const inputRequests of [{ a: QUESTION }, undefined]) {
    const { run, session, require, answer, events } = modern();
    const subscription = run();
    require(inputRequests, 'state');
    const received = events.length;
    assert.equal(session.reservations, ['one']);
    subscription.unsubscribe();
    answer(0, { result: 1 });
    mock.timers.tick(10 * 60_000);
    assert.equal([session.exchanges.length, events.length, session.reservations], [1, received, []]);
  }
});

test('a call whose next round does not arrive may have had effects before', () => {
  const { run, require, answer, session, failures } = modern();
  run();
  require({ who: QUESTION });
  answer(0, { result: { action: 'accept' } });
  session.last.fail(backendUnavailable('it is gone', { delivered: 'no' }));
  const found = failures.map((thrown) => [Object(thrown).delivered, Object(thrown).facts.retryAfterSeconds]);
  assert.equal(found, [['unknown', undefined]]);
});

test('a reservation that is lost during an exchange is reported by that exchange', () => {
  const { run, session, require, answer, failures, end } = modern();
  run();
  require({ a: QUESTION });
  answer(0, { result: 1 });
  session.lose(backendUnavailable('it is gone', { delivered: 'unknown' }));
  assert.equal(failures, []);
  session.last.result('{"resultType":"complete"}');
  assert.equal(end(), {});
});

test.run();

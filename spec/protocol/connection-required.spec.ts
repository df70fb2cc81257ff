// A call that needs an account which its user has not connected, at each door: what the client gets, and what continues the call.

import * as assert from 'uvu/assert';
import { errorOfAnswer } from '../../src/domain/calls/answer-errors.ts';
import { connectAt, noOwnAccount } from '../../src/domain/calls/connection-required.ts';
import type { SourcedEvent } from '../../src/domain/calls/exchange.ts';
import type { JsonObject } from '../../src/domain/json/json.ts';
import { systemClock } from '../../src/domain/time/clock.ts';
import { exchangeInSession } from '../../src/protocol/legacy/legacy-over-modern.ts';
import { suite } from '../helpers/suite.ts';
import { modernHarness, outcomeOf, resultOf } from './modern/modern-harness.ts';
import { HANDSHAKE, SessionBackends } from './scripted-backends.ts';

const test = suite('connection required');
const VISIT = { url: 'https://gateway.example/connections/abc', elicitationId: 'e-1' };
const CALL = { method: 'tools/call', params: { name: 'whoami', arguments: { a: 1 } } };
const URLS = { elicitation: { url: {} } };
const ASKED = 'Connect your account at "notes" in the browser.';
const TOLD = `"notes" needs your account there. Open ${VISIT.url} in a browser, connect the account, and repeat the call.`;

test('a modern client is asked to open the address, and its retry goes to the same instance', async () => {
  const { backends, send } = modernHarness();
  const asked = await send(CALL.method, CALL.params, { capabilities: URLS });
  backends.last.refuse(connectAt('notes', VISIT));
  const { resultType, inputRequests, requestState } = resultOf(asked);
  assert.equal(
    { resultType, inputRequests },
    {
      resultType: 'input_required',
      inputRequests: {
        'visit-1': { method: 'elicitation/create', params: { mode: 'url', message: ASKED, url: VISIT.url } },
      },
    },
  );
  const answered = {
    ...CALL.params,
    ...{ requestState: requestState ?? '', inputResponses: { 'visit-1': { action: 'accept' } } },
  };
  await send(CALL.method, answered, { capabilities: URLS });
  assert.is(backends.last.options.instanceId, 'a');
  for (const [params, owner] of [
    [{ ...answered, arguments: { a: 2 } }, 'ann'],
    [answered, 'bob'],
  ] as const)
    assert.is(outcomeOf(await send(CALL.method, params, { capabilities: URLS, owner })), '200 -32602');
});

test('a modern client that opens no addresses gets the result of a tool that says where to go', async () => {
  const { backends, send } = modernHarness();
  const told = await send(CALL.method, CALL.params, { capabilities: { elicitation: { form: {} } } });
  backends.last.refuse(connectAt('notes', VISIT));
  const { content, isError, resultType } = resultOf(told);
  assert.equal([content, isError, resultType], [[{ type: 'text', text: TOLD }], true, 'complete']);
});

test('a legacy client gets the error with the address, or the result of a tool', () => {
  const outcome = (capabilities: JsonObject, method = CALL.method) => {
    const backends = new SessionBackends();
    backends.handshake = { ...HANDSHAKE, era: 'modern', protocolVersion: '2026-07-28' };
    const session = backends.add('one', 'ann', { capabilities });
    const answers: SourcedEvent[] = [];
    exchangeInSession(session, { ...CALL, method }, systemClock).subscribe((answer) => answers.push(answer));
    session.last.refuse(connectAt('notes', VISIT));
    const event = answers.at(-1)?.event;
    return event?.kind === 'result' ? event.result.value : event?.kind === 'error' ? event.error : undefined;
  };
  assert.equal(JSON.parse(JSON.stringify(outcome(URLS))), {
    ...{ code: -32042, message: TOLD },
    data: { elicitations: [{ mode: 'url', message: ASKED, ...VISIT }] },
  });
  assert.equal(outcome({}), { content: [{ type: 'text', text: TOLD }], isError: true });
  assert.equal(outcome({}, 'prompts/get'), { code: -32603, message: TOLD });
});

test('a caller of REST gets 403 with the address, and one without an account what to do', () => {
  const { code, status, facts, message } = errorOfAnswer(CALL, connectAt('notes', VISIT));
  assert.equal([code, status, facts.connectUrl, message], ['CONNECTION_REQUIRED', 403, VISIT.url, TOLD]);
  const none = errorOfAnswer(CALL, noOwnAccount('notes'));
  assert.equal([none.code, none.facts.connectUrl], ['CONNECTION_REQUIRED', undefined]);
  assert.match(none.message, 'sign in by URL instead of using an API key');
});

test.run();

import * as assert from 'uvu/assert';
import type { EventName } from '../../src/domain/events.ts';
import {
  checkEventName,
  refusalOfAnswer,
  refusalOfCall,
  refusalOfList,
  refusalOfRequest,
} from '../../src/gateway/checked-requests.ts';
import { suite } from '../helpers/suite.ts';

// What each of them refuses is in gateway-bad-input.spec.ts.
const test = suite('checked requests');

test('nothing is made for a request that can be asked, and nothing of it is read deeply', () => {
  const walked = (): never => {
    throw new Error('params are walked');
  };
  const params = new Proxy({}, { get: walked, ownKeys: walked });
  const { signal } = new AbortController();
  const options = { timeoutMs: 0.5, instanceId: 'a', signal, looksUpTools: false };
  const request = { method: 'tools/list', params, headers: { 'mcp-param-a': 'b' } };
  assert.equal(
    [
      refusalOfRequest(request, undefined),
      refusalOfRequest({ method: 'x' }, options),
      refusalOfCall('say', params, options),
      refusalOfList('prompts', { timeoutMs: Number.POSITIVE_INFINITY }),
      refusalOfAnswer(request, { error: { code: 1, message: 'x' }, instanceId: 'a' }),
    ],
    Array.from({ length: 5 }, () => undefined),
  );
});

test('the words name the field and what would do, and never what was given', () => {
  const refusal = refusalOfRequest({ method: 'x' }, Object({ timeoutMs: 'planted' }));
  assert.is(refusal?.code, 'VALIDATION_ERROR');
  assert.match(refusal?.message ?? '', 'timeoutMs: expected milliseconds above 0');
  assert.not.match(JSON.stringify(refusal), 'planted');
});

test('an event has one of the names that there are', () => {
  checkEventName('exchange.finished');
  const unknown = 'exchange.finish' as EventName;
  assert.throws(() => checkEventName(unknown), /"exchange\.finished" is the nearest/);
});

test.run();

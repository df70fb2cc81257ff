// Whose progress token is on the wire, and whose comes back.

import * as assert from 'uvu/assert';
import { callerTokenOf, paramsForCaller, paramsWithToken } from '../../src/transports/handshake.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('progress token');

test('asks for the progress of a call, whose deadline it restarts, and of nothing else', () => {
  assert.equal(paramsWithToken({ method: 'tools/call' }, 5), { _meta: { progressToken: 5 } });
  for (const method of ['resources/read', 'prompts/get', 'completion/complete', 'tasks/get'])
    assert.is(paramsWithToken({ method }, 5), undefined);
});

test('replaces the token of the caller for any method and keeps the rest of _meta', () => {
  const params = { cursor: 'x', _meta: { progressToken: 0, traceparent: 't' } };
  const sent = { cursor: 'x', _meta: { progressToken: 5, traceparent: 't' } };
  assert.equal(paramsWithToken({ method: 'tools/list', params }, 5), sent);
  assert.equal(params._meta.progressToken, 0);
});

test('leaves other requests alone', () => {
  const params = { _meta: { traceparent: 't' } };
  assert.is(paramsWithToken({ method: 'tools/list', params }, 5), params);
  assert.is(paramsWithToken({ method: 'ping' }, 5), undefined);
});

test('survives a _meta that is no object', () => {
  const request = { method: 'tools/call', params: { _meta: 'nonsense' } };
  assert.is(callerTokenOf(request), undefined);
  assert.equal(paramsWithToken(request, 5), { _meta: { progressToken: 5 } });
});

test('gives the caller his own token back, or none', () => {
  const heard = { progressToken: 5, progress: 1, total: 2 };
  const request = { method: 'tools/call', params: { _meta: { progressToken: 'mine' } } };
  assert.equal(paramsForCaller(heard, callerTokenOf(request)), {
    progressToken: 'mine',
    progress: 1,
    total: 2,
  });
  assert.equal(paramsForCaller(heard, undefined), { progress: 1, total: 2 });
});

test.run();

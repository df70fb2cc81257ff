import * as assert from 'uvu/assert';
import type { RequestState } from '../../src/http/request.ts';
import { noteFailure } from '../../src/http/request.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('what the log says of a failure');

test('is the first error, with the word of the gateway for that one', () => {
  const state: RequestState = { requestId: 'r1' };
  noteFailure(state, 503, 'NO_HEALTHY_INSTANCE');
  noteFailure(state, 429, 'QUEUE_FULL');
  assert.equal(state, { requestId: 'r1', rpcError: 503, errorCode: 'NO_HEALTHY_INSTANCE' });
});

test('has no word where a server made the error', () => {
  const state: RequestState = { requestId: 'r1' };
  noteFailure(state, -32_000, undefined);
  noteFailure(state, 429, 'QUEUE_FULL');
  assert.equal(state, { requestId: 'r1', rpcError: -32_000 });
});

test.run();

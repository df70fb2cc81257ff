import * as assert from 'uvu/assert';
import type { RequestHeaders } from '../../src/protocol/headers.ts';
import { checkGetTypes, checkPostTypes } from '../../src/protocol/headers.ts';
import { RpcFailure } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('media types');

const TYPES = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };

/** Status and code of the refusal. */
function outcome(check: (headers: RequestHeaders) => void, headers: RequestHeaders): string {
  try {
    check(headers);
  } catch (thrown) {
    if (!(thrown instanceof RpcFailure)) throw thrown;
    return `${thrown.status} ${thrown.error.code}`;
  }
  return 'taken';
}

const ofPost = (headers: RequestHeaders) => outcome(checkPostTypes, { ...TYPES, ...headers });
const ofGet = (accept?: string) => outcome(checkGetTypes, { accept });

test('a POST has to take JSON and events', () => {
  for (const accept of [
    undefined,
    'application/json',
    'text/event-stream',
    'application/json5, text/event-stream',
  ]) {
    assert.is(ofPost({ accept }), '406 -32000', accept);
  }
});

test('a POST has to be JSON', () => {
  for (const type of [undefined, '', 'text/plain', 'application/json5']) {
    assert.is(ofPost({ 'content-type': type }), '415 -32000', type);
  }
});

test('a GET has to take events', () => {
  for (const accept of [undefined, 'application/json']) assert.is(ofGet(accept), '406 -32000', accept);
  for (const accept of ['text/event-stream', 'text/*', '*/*']) assert.is(ofGet(accept), 'taken', accept);
});

test('what is unusual but right is taken', () => {
  const variants: RequestHeaders[] = [
    {},
    { accept: '*/*' },
    { accept: 'application/*, text/*;q=0.5' },
    { accept: 'text/event-stream,application/json;q=0.9' },
    { 'content-type': 'Application/JSON; charset=utf-8' },
  ];
  for (const headers of variants) assert.is(ofPost(headers), 'taken', JSON.stringify(headers));
});

test.run();

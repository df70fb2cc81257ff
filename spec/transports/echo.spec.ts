import * as assert from 'uvu/assert';
import { isEcho } from '../../src/transports/handshake.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('echo');

const sent = { id: 1, method: 'initialize' };
const request = (id: number | string, method: string) =>
  ({ kind: 'request', id, method, params: {} }) as const;

test('is a request with the id and the method of our own', () => {
  assert.is(isEcho(request(1, 'initialize'), sent), true);
});

test('is no request with another id, an id of another type, or another method', () => {
  assert.is(isEcho(request(2, 'initialize'), sent), false);
  assert.is(isEcho(request('1', 'initialize'), sent), false);
  assert.is(isEcho(request(1, 'roots/list'), sent), false);
});

test('is no ping: either side may ask it, and both count from the start', () => {
  assert.is(isEcho(request(1, 'ping'), { id: 1, method: 'ping' }), false);
});

test.run();

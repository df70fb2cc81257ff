import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import * as assert from 'uvu/assert';
import { readAllOf } from '../../../src/http/body/read.ts';
import { ClientGone } from '../../../src/http/request.ts';
import { suite } from '../../helpers/suite.ts';

// That it answers like the other reader is held by spec/http/middleware/body.spec.ts.
const test = suite('reading a body directly');

test('joins the pieces', async () => {
  const request = new PassThrough();
  const reading = readAllOf(request, 100);
  request.write('one');
  request.write(' two');
  request.end(' three');
  assert.is((await reading).toString(), 'one two three');
});

test('reads nothing as nothing', async () => {
  const request = new PassThrough();
  const reading = readAllOf(request, 100);
  request.end();
  assert.is((await reading).length, 0);
});

test('allows exactly the limit', async () => {
  const request = new PassThrough();
  const reading = readAllOf(request, 3);
  request.end('abc');
  assert.is((await reading).toString(), 'abc');
});

test('refuses one byte more, with all of its listeners gone', async () => {
  const request = new PassThrough();
  const reading = readAllOf(request, 3);
  request.end('abcd');
  const refusal = await reading.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.is(refusal instanceof Error && 'code' in refusal && refusal.code, 'PAYLOAD_TOO_LARGE');
  assert.is(request.listenerCount('data'), 0);
});

test('rejects when the client breaks off', async () => {
  const request = new PassThrough();
  const reading = readAllOf(request, 100);
  request.write('half of i');
  request.destroy(new Error('socket hang up'));
  const reason = await reading.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.instance(reason, ClientGone);
});

test('rejects when the client has left before', async () => {
  const request = new PassThrough();
  request.destroy();
  await once(request, 'close');
  const reason = await readAllOf(request, 100).catch((thrown: unknown) => thrown);
  assert.instance(reason, ClientGone);
});

test.run();

import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import * as assert from 'uvu/assert';
import { drain } from '../../../src/http/middleware/errors.ts';
import { startApp } from '../../helpers/http-app.ts';
import { head, openRaw, readAll, readUntil } from '../../helpers/http-raw.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('draining a refused body');

test('lets the connection go on after a body that was too large', async () => {
  const app = await startApp({ maxBodyBytes: 100 });
  const socket = await openRaw(app.port);
  const headers = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' };
  socket.write(head('POST /gateway/register', headers));
  socket.write(`1000\r\n${'x'.repeat(0x1000)}\r\n`);
  const refusal = await readUntil(socket, 'PAYLOAD_TOO_LARGE');
  assert.match(refusal, /^HTTP\/1\.1 413 /);

  socket.write(`1000\r\n${'x'.repeat(0x1000)}\r\n0\r\n\r\n`);
  socket.write(head('GET /livez', { Connection: 'close' }));
  assert.match(await readAll(socket), /^HTTP\/1\.1 200 [\s\S]*alive/);
  await app.close();
});

test('ends a connection that never stops sending', async () => {
  const request = new PassThrough();
  drain(request, 10);
  request.write('12345');
  request.write('1234567');
  await once(request, 'close');
  assert.ok(request.destroyed);
});

test.run();

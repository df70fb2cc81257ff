import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import * as assert from 'uvu/assert';
import { systemClock } from '../../src/domain/time/clock.ts';
import { BackendFetch } from '../../src/vault/backend-fetch.ts';
import { suite } from '../helpers/suite.ts';

const PIECES = 500_000;
/** Half a million pieces, each an object of its own, take more. */
const MAX_HEAP = 50 * 1024 * 1024;

const requests = suite('requests to servers that a backend names');

requests('a body in pieces of one byte takes the memory of a body in one piece', async () => {
  const server = createServer((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      socket.write('1\r\nx\r\n'.repeat(PIECES));
    });
    socket.on('error', () => {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  try {
    const fetch = new BackendFetch({ clock: systemClock, isDenied: () => false, openNetworks: [] });
    const before = process.memoryUsage().heapUsed;
    let heap = 0;
    let isLeftOpen = false;
    const answer = await fetch.send(url, url, {
      partly: {
        isEnough: () => {
          heap = process.memoryUsage().heapUsed - before;
          return true;
        },
        restMs: 300,
        onLeftOpen: () => {
          isLeftOpen = true;
        },
      },
    });
    assert.is((await answer.arrayBuffer()).byteLength, PIECES);
    assert.ok(isLeftOpen);
    assert.ok(heap < MAX_HEAP, `${heap} bytes`);
  } finally {
    server.close();
  }
});

requests.run();

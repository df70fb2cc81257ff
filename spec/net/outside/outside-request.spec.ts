// Requests to servers that outsiders name, with answers that no web server should give: each request ends, and nothing else does.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { IssuerKeys } from '../../../src/auth/issuers/issuer-keys.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { askOutside } from '../../../src/net/outside/outside-request.ts';
import { BackendFetch } from '../../../src/vault/backend-fetch.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('requests to servers that outsiders name');

/** A server that answers each connection in this way. */
async function withServer(answer: (socket: Socket) => void, run: (url: string) => Promise<void>) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    socket.once('data', () => answer(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

const says = (text: string) => (socket: Socket) => void socket.write(text);
const SWITCHES = says('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n');

const INTERIM = 'HTTP/1.1 102 x\r\n\r\n'.repeat(1_000);

/** What the function and those that use it make of the answer. */
const ANSWERS: Readonly<Record<string, readonly [(socket: Socket) => void, RegExp, RegExp]>> = {
  'another protocol': [SWITCHES, /closed the connection without an answer/, /closed the connection/],
  'a status that is none': [says('HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n'), /^999 $/, /^500 $/],
  'an interim answer without end': [
    (socket) => void setInterval(() => socket.write('HTTP/1.1 102 x\r\n\r\n'), 20).unref(),
    /gave more than 16 interim answers/,
    /gave more than 16 interim answers/,
  ],
  'interim answers as fast as they are read': [
    (socket) => {
      const write = () => void (socket.write(INTERIM) ? setImmediate(write) : socket.once('drain', write));
      write();
    },
    /gave more than 16 interim answers/,
    /gave more than 16 interim answers/,
  ],
  'one byte after the other': [
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      setInterval(() => socket.write('x'), 20).unref();
    },
    /gave no answer within 500 ms/,
    /gave no answer within 500 ms/,
  ],
  'no end': [
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      const write = () =>
        void (socket.write(Buffer.alloc(65_536, 'x')) ? setImmediate(write) : socket.once('drain', write));
      write();
    },
    /answered with more than 65536 bytes/,
    /answered with more than 65536 bytes/,
  ],
  'half an answer': [
    (socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}'),
    /aborted/,
    /cannot be reached/,
  ],
};

const soon = { ...systemClock, alarm: (_: number, run: () => void) => systemClock.alarm(500, run) };

for (const [name, [answer, expected, shown]] of Object.entries(ANSWERS))
  test(`end with ${name}`, () =>
    withServer(answer, async (url) => {
      const asked = await askOutside(new URL(url), {
        ...{ alarm: systemClock.alarm, timeoutMs: 500, mostBytes: 65_536 },
      }).then(({ status, body }) => `${status} ${body}`, String);
      assert.match(asked, expected);
      const fetch = new BackendFetch({ clock: soon, isDenied: () => false, openNetworks: [] });
      const given = await fetch
        .send(url, url)
        .then(async (got) => `${got.status} ${await got.text()}`, String);
      assert.match(given.replace('10000 ms', '500 ms'), shown);
      const partly = { isEnough: () => false, restMs: 100, onLeftOpen: () => {} };
      await fetch.send(url, url, { partly }).catch(() => undefined);
      await fetch.send(url, url, { isBodyIgnored: true }).catch(() => undefined);
      const lines: string[] = [];
      const keys = new IssuerKeys({ issuer: url, jwksUri: url }, soon, (line) => lines.push(line));
      await keys.current(false).catch(() => undefined);
      assert.is(lines.length, 1);
    }));

test('leave their places at once: the 21st is sent, too', () =>
  withServer(SWITCHES, async (url) => {
    const fetch = new BackendFetch({ clock: systemClock, isDenied: () => false, openNetworks: [] });
    for (let n = 0; n < 21; n += 1)
      assert.match(
        String(await fetch.send(url, url).catch(String)),
        /closed the connection without an answer/,
      );
  }));

test.run();

// The tokens that both ends of a multiplexed connection remember have a bound in all.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { MultiplexedConnection } from '../../../../src/cluster/channel/multiplexed/multiplexed-connection.ts';
import { MultiplexedListener } from '../../../../src/cluster/channel/multiplexed/multiplexed-listener.ts';
import {
  MESSAGE,
  MessageReader,
  MessageWriter,
} from '../../../../src/cluster/channel/multiplexed/multiplexed-wire.ts';
import type { PeerExchange } from '../../../../src/cluster/channel/peer-exchange.ts';
import { INSTANCE_PATHS } from '../../../../src/cluster/channel/peer-protocol.ts';
import { systemClock } from '../../../../src/domain/time/clock.ts';
import { becomes, until } from '../../../helpers/eventually.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('tokens of multiplexed connections');
const MAX_TOKEN_BYTES = 16 * 1024 * 1024;
const LARGE = 60_000;

/** A server whose first connection is given to `take`. */
async function withServer(take: (socket: Socket) => void, run: (port: number) => Promise<void>) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    take(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    await run((server.address() as AddressInfo).port);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

test('the sender takes old ones back before it sends more', async () => {
  const tokens = new Map<number, string>();
  const used: string[] = [];
  let most = 0;
  const take = (socket: Socket) => {
    const reader = new MessageReader((kind, number, content) => {
      if (kind === MESSAGE.token) tokens.set(number, content.toString('latin1'));
      else if (kind === MESSAGE.request) used.push(tokens.get(content.readUInt16BE(0)) ?? '');
      most = Math.max(
        most,
        [...tokens.values()].reduce((sum, { length }) => sum + length, 0),
      );
    });
    socket.once('data', () => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n');
      socket.on('data', (bytes) => reader.push(bytes));
    });
  };
  await withServer(take, async (port) => {
    const connection = new MultiplexedConnection({
      ...{ clock: systemClock, host: 'b', token: 't', over: () => {}, returned: () => {} },
      connector: {
        connectedEvent: 'connect',
        connect: (onread) => connect({ host: '127.0.0.1', port, onread }),
      },
    });
    const caller = { requestId: 'r' };
    const request = { target: INSTANCE_PATHS.exchange, body: Buffer.alloc(0), caller };
    const exchange = { request, onRequestStart: () => true, onResponseError: () => {} } as unknown;
    const sent: string[] = [];
    for (let n = 0; n < 600; n += 1) {
      const token = String(n % 400).padEnd(LARGE, 'x');
      await until(() => connection.dispatch(exchange as PeerExchange, token), 'it takes the request');
      sent.push(token);
    }
    await becomes(() => used.length, 600);
    assert.equal(
      used.map((token) => token.slice(0, 5)),
      sent.map((token) => token.slice(0, 5)),
    );
    assert.ok(most > MAX_TOKEN_BYTES - LARGE && most <= MAX_TOKEN_BYTES, `${most} bytes`);
    connection.destroy();
  });
});

test('the receiver ends a connection with more of them', async () => {
  const take = (socket: Socket) =>
    void new MultiplexedListener(socket, Buffer.alloc(0), { serve: () => {}, admit: () => {} }, () => {});
  await withServer(take, async (port) => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    await once(socket, 'data');
    const writer = new MessageWriter(socket);
    const send = async (from: number, count: number) => {
      for (let slot = from; slot < from + count; slot += 1) {
        writer.message(MESSAGE.token, slot % 300, Buffer.alloc(LARGE));
        if (writer.isBusy) await turn();
      }
    };
    const fit = Math.floor(MAX_TOKEN_BYTES / LARGE);
    await send(0, fit);
    await send(0, fit); // in the place of those
    writer.message(MESSAGE.ping, 1);
    await once(socket, 'data');
    const closed = once(socket, 'close');
    await send(fit, 1);
    await closed;
  });
});

test.run();

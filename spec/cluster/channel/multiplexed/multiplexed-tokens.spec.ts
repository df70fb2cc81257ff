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
  TOKEN_SLOTS,
} from '../../../../src/cluster/channel/multiplexed/multiplexed-wire.ts';
import { PeerExchange } from '../../../../src/cluster/channel/peer-exchange.ts';
import { INSTANCE_PATHS } from '../../../../src/cluster/channel/peer-protocol.ts';
import { ANONYMOUS } from '../../../../src/domain/accounts/principal.ts';
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

/** Sends a request with each of these tokens; resolves with the most bytes of tokens that the receiver had at a time. */
async function sendWith(sent: readonly string[]): Promise<number> {
  const tokens = new Map<number, string>();
  const used: string[] = [];
  let bytes = 0;
  let most = 0;
  const take = (socket: Socket) => {
    const reader = new MessageReader((kind, number, content) => {
      if (kind === MESSAGE.request) used.push(tokens.get(content.readUInt16BE(0)) ?? '');
      if (kind !== MESSAGE.token) return;
      bytes += content.length - (tokens.get(number)?.length ?? 0);
      tokens.set(number, content.toString('latin1'));
      most = Math.max(most, bytes);
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
    for (const token of sent)
      await until(() => connection.dispatch(cancelledExchange(), token), 'it takes the request');
    await becomes(() => used.length, sent.length);
    assert.equal(
      used.map((token) => token.slice(0, 5)),
      sent.map((token) => token.slice(0, 5)),
    );
    connection.destroy();
  });
  return most;
}

/** An exchange that is cancelled as soon as it is sent. */
function cancelledExchange(): PeerExchange {
  const ignored = (): void => {};
  const request = {
    ...{
      method: 'POST',
      target: INSTANCE_PATHS.exchange,
      headers: {},
      body: Buffer.alloc(0),
      isStream: false,
    },
    caller: { principal: ANONYMOUS, requestId: 'r', address: undefined },
    isRepeatable: () => false,
    mayBeSent: () => {
      queueMicrotask(() => exchange.cancel());
      return true;
    },
  };
  const answer = {
    ...{ head: ignored, data: () => true, end: ignored },
    failed: ignored,
    notHolder: ignored,
  };
  const events = { ...{ startedAtMs: 0, heard: ignored, refused: ignored }, lost: ignored, ended: ignored };
  const exchange = new PeerExchange(request, answer, events);
  return exchange;
}

const large = (n: number) => String(n).padEnd(LARGE, 'x');

test('the sender takes old ones back before it sends more', async () => {
  const most = await sendWith(Array.from({ length: 600 }, (_, n) => large(n % 400)));
  assert.ok(most > MAX_TOKEN_BYTES - LARGE && most <= MAX_TOKEN_BYTES, `${most} bytes`);
});

test('the sender counts one that it has sent again in another slot', async () => {
  const tokens = Array.from({ length: 290 }, (_, n) => large(n));
  const again = tokens.slice(0, 5);
  // Up to those slots in which the tokens were first.
  const small = Array.from({ length: TOKEN_SLOTS - tokens.length }, (_, n) => `small ${n}`);
  const later = Array.from({ length: 10 }, (_, n) => large(1_000 + n));
  const most = await sendWith([...tokens, ...again, ...small, ...later]);
  assert.ok(most <= MAX_TOKEN_BYTES, `${most} bytes`);
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

// The messages of two nodes as they are written to a socket: what waits for a node, and when it is written.

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import {
  MESSAGE,
  MessageReader,
  MessageWriter,
  PART_BYTES,
} from '../../../../src/cluster/channel/multiplexed/multiplexed-wire.ts';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('messages of two nodes');

test('an answer that waits for the other node goes on as soon as it reads, without a further one', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const near = connect(Object(server.address()).port, '127.0.0.1');
  const [far]: Socket[] = await once(server, 'connection');
  assert.ok(far);
  const answered = new Set<number>();
  const reader = new MessageReader((kind, number) => kind === MESSAGE.last && answered.add(number));
  const writer = new MessageWriter(near);
  let sent = 0;
  do {
    sent += 1;
    writer.part(MESSAGE.last, sent, Buffer.alloc(PART_BYTES));
    await turn();
  } while (writer.waitingBytes(sent) === 0); // the system buffers some of them
  far.on('data', (bytes) => reader.push(bytes));
  await becomes(() => answered.size, sent);
  near.destroy();
  server.close();
});

test('answers that wait for a node that reads nothing have a bound together, and one over it breaks off', async () => {
  const written: Buffer[] = [];
  const socket = {
    writableLength: LIMITS.backendMessageBytes,
    write: (bytes: Buffer) => written.push(bytes) > 0,
  };
  const writer = new MessageWriter(socket);
  const largest = Buffer.alloc(LIMITS.backendMessageBytes);
  for (const number of [1, 2]) writer.part(MESSAGE.last, number, largest);
  writer.part(MESSAGE.last, 3, Buffer.alloc(1));
  writer.drop(1);
  writer.part(MESSAGE.last, 4, largest);
  await turn();
  const kinds: number[][] = [];
  new MessageReader((kind, number) => kinds.push([kind, number])).push(Buffer.concat(written));
  assert.equal(kinds, [[MESSAGE.broken, 3]]);
  assert.equal(
    [1, 2, 3, 4].map((number) => writer.waitingBytes(number) > 0),
    [false, true, false, true],
  );
});

test.run();

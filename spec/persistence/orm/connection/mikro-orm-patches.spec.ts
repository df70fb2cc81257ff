// Changes of MikroORM's behaviour: sockets that are destroyed at once. Texts that Oracle or SQL
// Server would read differently: spec/conformance.

import { EventEmitter, once } from 'node:events';
import { Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { Sockets } from '../../../../src/persistence/orm/connection/mikro-orm-patches.ts';
import { suite } from '../../../helpers/suite.ts';
import { withRawServer } from '../../../transports/raw-server.ts';

const test = suite('MikroORM patches');

test('destroy the connections of a pool once, or close those that can only be closed', () => {
  const ended: string[] = [];
  const pool = new EventEmitter();
  const sockets = new Sockets();
  sockets.watch(pool, 'connection');
  pool.emit('connection', { destroy: () => ended.push('plain') });
  pool.emit('connection', { connection: { stream: { destroy: () => ended.push('inner') } } });
  sockets.add({ close: () => ended.push('closed') });
  assert.equal(ended, []);
  sockets.destroy();
  sockets.destroy();
  // One that was still being opened.
  pool.emit('connection', { destroy: () => ended.push('late') });
  assert.equal(ended, ['plain', 'inner', 'closed', 'late']);
});

test('do not destroy connections that closed by themselves', () => {
  for (const event of ['close', 'end']) {
    const sockets = new Sockets();
    let isDestroyed = false;
    const connection = Object.assign(new EventEmitter(), { destroy: () => (isDestroyed = true) });
    sockets.add(connection);
    connection.emit(event);
    sockets.destroy();
    assert.is(isDestroyed, false);
  }
});

test('leave no connection of a socket that a driver connects after their end', async () => {
  await withRawServer(
    () => {},
    async ({ port }) => {
      const sockets = new Sockets();
      sockets.destroy();
      const socket = sockets.opened(new Socket()).connect(port, '127.0.0.1');
      await once(socket, 'connect');
      assert.is(socket.destroyed, true);
    },
  );
});

test.run();

// Ending sockets at once.

import { EventEmitter } from 'node:events';
import * as assert from 'uvu/assert';
import { Sockets } from '../../src/persistence/mikro-orm-patches.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('sockets');

test('destroys what a pool opened, and closes what can only be closed, once', () => {
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
  assert.equal(ended, ['plain', 'inner', 'closed']);
});

test('forgets what closed by itself', () => {
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

test('refuses a pool that cannot be watched', () => {
  assert.throws(() => new Sockets().watch({}, 'connect'), /no pool/);
});

test.run();

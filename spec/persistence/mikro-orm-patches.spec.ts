// What is changed of MikroORM's own behaviour: texts that Oracle or SQL Server would read otherwise than they were written,
// statements on new connections, and sockets that are ended at once.

import { EventEmitter } from 'node:events';
import * as assert from 'uvu/assert';
import {
  correctLiterals,
  runOn,
  Sockets,
  withoutContinuedLines,
  withoutVariables,
} from '../../src/persistence/mikro-orm-patches.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('MikroORM patches');

test('cuts a text for Oracle between a dollar and a digit', () => {
  const hash = `'$2b$12$abc'`;
  assert.is(withoutVariables(hash), `('$' || '2b$' || '12$abc')`);
  // What the driver does to every statement.
  assert.is(withoutVariables(hash).replace(/\$(\d+)/g, ':0'), withoutVariables(hash));
  assert.is(withoutVariables(`'$1$2'`), `('$' || '1$' || '2')`);
});

test('cuts a text for SQL Server between a backslash and the end of its line', () => {
  assert.is(withoutContinuedLines(`N'C:\\\nD:\\\r\nE'`), `(N'C:\\' + N'\nD:\\' + N'\r\nE')`);
  assert.is(withoutContinuedLines(`'a\\\\\n'`), `('a\\\\' + '\n')`);
});

test('leaves every other text as it is', () => {
  for (const literal of [`''`, `'$'`, `'$$ $x 1'`, `N'C:\\temp\\'`, `'line\nbreak'`, `'it''s'`, `'\\r\\n'`]) {
    assert.is(withoutVariables(literal), literal);
    assert.is(withoutContinuedLines(literal), literal);
  }
});

test('corrects what a platform writes for texts, and nothing else', () => {
  const platform = {
    before: 'N',
    escape(value: unknown): string {
      return typeof value === 'string' ? `${this.before}'${value}'` : String(value);
    },
  };
  correctLiterals(platform, (literal) => `<${literal}>`);
  assert.equal([platform.escape('a'), platform.escape(1), platform.escape(null)], [`<N'a'>`, '1', 'null']);
});

test('never takes silence of a new connection for success', async () => {
  for (const nothing of [undefined, null, {}, { executeQuery: 1 }])
    assert.instance(await runOn(nothing, 'set x = 1').catch((thrown: unknown) => thrown), TypeError);
});

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

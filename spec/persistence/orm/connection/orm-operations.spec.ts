// Operations on a database: one at a time, within a time limit, repeated after a conflict, on SQLite. Servers that are slow,
// silent or lost: spec/system/databases.

import { mkdir, symlink, writeFile } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { GatewayError } from '../../../../src/domain/errors/errors.ts';
import { createCipher } from '../../../../src/persistence/cipher.ts';
import { sqlite } from '../../../../src/persistence/databases/sqlite.ts';
import { connectOrm, type Orm } from '../../../../src/persistence/orm/connection/orm.ts';
import { OrmOperations } from '../../../../src/persistence/orm/connection/orm-operations.ts';
import { migrate } from '../../../../src/persistence/orm/migrate.ts';
import { rekey } from '../../../../src/persistence/orm/orm-rekey.ts';
import { folderOfEach } from '../../../helpers/folder.ts';
import { endOf, errorOf, errorSummary, thrownBy } from '../../../helpers/outcome.ts';
import { suite } from '../../../helpers/suite.ts';
import { connectOptions } from '../../connect-options.ts';

const test = suite('ORM session', { timeoutMs: 30_000 });
/** A time limit, in ms, after which an operation fails, and within which the next one succeeds on a busy machine. */
const LIMIT_MS = 2_000;
const folder = folderOfEach(test);
const optionsOf = () => connectOptions(`sqlite:////${folder('x.db')}`);
const ends: { close(): Promise<void> }[] = [];
test.after.each(async () => {
  for (const each of ends.splice(0)) await each.close();
});

test('increments the revision once per change, and leaves nothing of a refused change', async () => {
  const { session, revision } = await opened();
  assert.is(await session.change(async (_em, _tables, number) => number), 1);
  const refusal = new Error('refused');
  const refused = session.change(async (em, { settings }) => {
    await em.insert(settings, { name: 'n', value: 'v' });
    throw refusal;
  });
  assert.is(await thrownBy(refused), refusal);
  assert.is(await session.run((em, { settings }) => em.count(settings)), 0);
  assert.is(await session.changeIf(async () => false), undefined);
  assert.is(await revision(), 1);
  assert.is(await session.changeIf(async () => true), 2);
  assert.is(await revision(), 2);
});

test('does not show an unfinished transaction to other operations', async () => {
  const { session } = await opened();
  const writing = session.write(async (em, { settings }) => {
    await em.insert(settings, { name: 'one', value: 'v' });
    await new Promise((resolve) => setImmediate(resolve));
    await em.insert(settings, { name: 'two', value: 'v' });
  });
  const counts = await Promise.all(
    [1, 2, 3].map(() => session.run((em, { settings }) => em.count(settings))),
  );
  assert.equal(counts, [2, 2, 2]);
  await writing;
});

test('lets other work run between queries of a file that follow each other for long', async () => {
  const { session } = await opened();
  let turns = 0;
  const counting = setInterval(() => (turns += 1), 1);
  const untilMs = performance.now() + 200;
  while (performance.now() < untilMs) await session.run((em, { settings }) => em.count(settings));
  clearInterval(counting);
  assert.ok(turns > 2, `${turns} turns`);
});

test('repeats a change while another process writes', async () => {
  const { session, other, revision } = await opened();
  await other('begin immediate');
  const saving = session.change(async () => 'saved');
  let isSaved = false;
  void saving.then(() => (isSaved = true));
  for (let left = 5; left > 0; left -= 1) await new Promise((resolve) => setImmediate(resolve));
  assert.is(isSaved, false);
  await other('commit');
  assert.is(await saving, 'saved');
  assert.is(await revision(), 1);
});

test('fails with DATABASE_UNAVAILABLE after the time limit, and then has changed nothing', async () => {
  const { session, other, revision } = await opened({ timeoutMs: LIMIT_MS });
  await other('begin immediate');
  const startedAt = performance.now();
  const ends = await Promise.all([1, 2, 3].map(() => endOf(session.change(async () => 'saved'))));
  const tookMs = performance.now() - startedAt;
  assert.equal(ends, Array(3).fill('DATABASE_UNAVAILABLE'));
  assert.ok(tookMs < 5 * LIMIT_MS, `took ${tookMs} ms`);
  await other('commit');
  assert.is(await session.change(async () => 'saved'), 'saved');
  assert.is(await revision(), 1);
});

test('reports the code of a failed statement, and not the statement', async () => {
  const { session } = await opened();
  const failure = await thrownBy(session.run((em) => em.execute('select nonsense')));
  assert.match(String(failure), 'SQLITE_ERROR');
  assert.not.match(String(failure), 'nonsense');
  assert.not.instance(failure, GatewayError);
});

test('finishes pending changes before it closes, closes once, and refuses later operations', async () => {
  const { session, other } = await opened();
  const changes = Promise.all([1, 2, 3].map(() => session.change(async (_em, _tables, number) => number)));
  await Promise.all([session.close(), session.close()]);
  assert.equal(await changes, [1, 2, 3]);
  assert.equal(await other('select counter from revision'), [{ counter: 3 }]);
  assert.is(await endOf(session.run(async () => 1)), 'DATABASE_UNAVAILABLE');
});

test('does not commit a change whose time limit has passed', async () => {
  const { session } = await opened({ timeoutMs: LIMIT_MS });
  const gate = Promise.withResolvers<void>();
  const writing = session.write(async (em, { settings }) => {
    await em.insert(settings, { name: 'late', value: 'v' });
    await gate.promise;
  });
  assert.equal(await errorSummary(writing), ['DATABASE_UNAVAILABLE', 'no', 5]);
  gate.resolve();
  assert.is(await session.run((em, { settings }) => em.count(settings)), 0);
});

test('a change is done when the disk has it, and the connection is free meanwhile', async () => {
  const disk = new Disk();
  const { session } = await opened({ disk });
  const done: string[] = [];
  const save = (name: string) =>
    session
      .change((em, { settings }) => em.insert(settings, { name, value: 'v' }))
      .then(() => void done.push(name));
  const first = save('first');
  const end = await disk.begun();
  const others = [save('second'), save('third')];
  assert.is(await session.run((em, { settings }) => em.count(settings)), 3);
  assert.equal([done, disk.times], [[], 1]);
  end();
  await first;
  (await disk.begun())();
  await Promise.all(others);
  assert.equal(done, ['first', 'second', 'third']);
  assert.is(disk.times, 2, 'changes that wait for the disk share its next time');
});

test('no statement waits for the disk in its turn', async () => {
  const { session } = await opened();
  assert.equal(await session.run((em) => em.execute('pragma synchronous')), [{ synchronous: 1 }]);
});

test('writeWithoutSync does not wait for the disk, which gets its changes before the session closes', async () => {
  const disk = new Disk();
  const { session, other } = await opened({ disk });
  await session.writeWithoutSync((em, { settings }) => em.insert(settings, { name: 'behind', value: 'v' }));
  assert.equal(await other('select name from settings'), [{ name: 'behind' }]);
  assert.is(disk.times, 0);
  const closing = session.close();
  (await disk.begun())();
  await closing;
});

test('a change that the disk refuses may have happened, and the next one begins anew', async () => {
  const disk = new Disk();
  const { session } = await opened({ disk });
  const refused = errorSummary(session.change(async () => undefined));
  (await disk.begun())(Object.assign(new Error('i/o error'), { code: 'EIO' }));
  assert.equal(await refused, ['DATABASE_UNAVAILABLE', 'unknown', undefined]);
  const next = session.change(async (_em, _tables, revision) => revision);
  (await disk.begun())();
  assert.is(await next, 2);
});

test('those that committed before an error of the disk may not have happened either: the disk reports it once', async () => {
  const disk = new Disk();
  const { session } = await opened({ disk });
  const first = errorSummary(session.change(async () => undefined));
  const end = await disk.begun();
  const second = errorSummary(session.change(async () => undefined));
  await session.run(async () => undefined);
  end(Object.assign(new Error('i/o error'), { code: 'EIO' }));
  const unknown = ['DATABASE_UNAVAILABLE', 'unknown', undefined];
  assert.equal([await first, await second], [unknown, unknown]);
  const next = session.change(async (_em, _tables, revision) => revision);
  (await disk.begun())();
  assert.is(await next, 3);
});

test('an error of the disk that no change waits for opens the file anew, too', async () => {
  const disk = new Disk();
  const { session, connections } = await opened({ disk });
  await session.writeWithoutSync((em, { settings }) => em.insert(settings, { name: 'behind', value: 'v' }));
  (await disk.begun())(Object.assign(new Error('i/o error'), { code: 'EIO' }));
  await new Promise((resolve) => setImmediate(resolve));
  assert.is(await session.run((em, { settings }) => em.count(settings)), 1);
  assert.is(connections(), 2);
});

test('texts are encrypted again when the disk has them: the key before may go then', async () => {
  const disk = new Disk();
  const { session } = await opened({ disk });
  const refused = errorSummary(rekey(session, createCipher([new Uint8Array(32)])));
  (await disk.begun())(Object.assign(new Error('i/o error'), { code: 'EIO' }));
  assert.equal(await refused, ['DATABASE_UNAVAILABLE', 'unknown', undefined]);
});

test('the journal is found beside the file that a link names', async () => {
  const options = connectOptions(`sqlite:////${folder('link.db')}`);
  await mkdir(folder('real'));
  await writeFile(folder('real/x.db'), '');
  await symlink(folder('real/x.db'), folder('link.db'));
  const orm = await connectOrm(sqlite, options);
  await migrate(sqlite, orm, 5_000);
  const session = new OrmOperations({ database: sqlite, orm, timeoutMs: 5_000, file: folder('link.db') });
  ends.push(session);
  assert.is(await session.change(async (_em, _tables, revision) => revision), 1);
});

test('a change that the disk does not take in time may have happened', async () => {
  const disk = new Disk();
  const { session, connections } = await opened({ timeoutMs: LIMIT_MS, disk });
  const late = errorSummary(session.change(async () => undefined));
  const end = await disk.begun();
  assert.equal(await late, ['DATABASE_UNAVAILABLE', 'unknown', undefined]);
  await session.run(async () => undefined);
  assert.is(connections(), 1, 'closing the file would wait for the disk in its turn');
  end();
});

test('works again when a full disk has space again', async () => {
  const options = optionsOf();
  const opened: unknown[] = [];
  // The maximum size of SQLite stands for a full disk, in the real driver and for every connection.
  let isFull = false;
  const open = async () => {
    const orm = await connectOrm(sqlite, options);
    opened.push(await orm.connection.getNativeClient());
    if (isFull) await orm.connection.execute('pragma max_page_count = 1');
    return orm;
  };
  const orm = await open();
  await migrate(sqlite, orm, 5_000);
  const refusals: unknown[] = [];
  const onRefusal = (...reason: unknown[]) => void refusals.push(reason);
  const session = new OrmOperations({ database: sqlite, orm, timeoutMs: 5_000, reconnect: open, onRefusal });
  const add = (name: string, size: number) => {
    const row = { name, value: 'v'.repeat(size) };
    return session.write((em, { settings }) => em.insert(settings, row));
  };
  await add('before', 10);
  isFull = true;
  await session.run((em) => em.execute('pragma max_page_count = 1'));
  for (const name of ['one', 'two']) {
    const { code, facts, message } = await errorOf(add(name, 1_000_000));
    assert.is(code, 'DATABASE_UNAVAILABLE');
    assert.is(message, 'The database has no space left. Nothing was changed.');
    assert.match(String(facts.cause), 'SQLITE_FULL');
    // Reads work, but the probe fails, since the database accepts no changes.
    assert.is(await session.run((em, { settings }) => em.count(settings)), 1);
  }
  await errorOf(session.probe());
  assert.equal(refusals, [['SQLITE_FULL', true]], 'once, and without a value');
  isFull = false;
  await session.probe();
  await add('four', 1_000_000);
  const rows = await session.run((em, { settings }) => em.findAll(settings, { orderBy: { name: 'asc' } }));
  assert.is(rows.map(({ name }) => name).join(), 'before,four');
  await session.close();
  for (const each of opened) assert.is(Reflect.get(Object(each), 'open'), false);
});

test('an operation whose pool was dropped fails with DATABASE_UNAVAILABLE, whatever its driver throws', async () => {
  const reconnect = () => connectOrm(sqlite, optionsOf());
  const database = { ...sqlite, isFile: false };
  const session = new OrmOperations({ database, orm: await reconnect(), timeoutMs: 100, reconnect });
  ends.push(session);
  const silent = endOf(session.run(() => new Promise(() => {})));
  const other = session.run(async () => {
    await silent;
    throw new TypeError('its pool is undefined');
  });
  assert.equal(await errorSummary(other), ['DATABASE_UNAVAILABLE', 'no', 5]);
});

test('does nothing on a connection that opens after its time limit', async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const reconnect = async () => {
    await gate;
    return connectOrm(sqlite, optionsOf());
  };
  const orm = await connectOrm(sqlite, optionsOf());
  const session = new OrmOperations({ database: sqlite, orm, timeoutMs: LIMIT_MS, reconnect });
  ends.push(session);
  await endOf(session.run(() => new Promise(() => {})));
  const done: string[] = [];
  const work = (name: string) => endOf(session.run(async () => void done.push(name)));
  await work('too late');
  const next = work('next');
  open();
  await next;
  assert.equal(done, ['next']);
});

test('operations end together once their time is bounded, also a connection that is being opened', async () => {
  const options = optionsOf();
  let isAborted = false;
  const session = new OrmOperations({
    database: { ...sqlite, isFile: false },
    orm: await connectOrm(sqlite, options),
    timeoutMs: 100,
    reconnect: (signal) => {
      signal.addEventListener('abort', () => {
        isAborted = true;
      });
      return new Promise(() => {});
    },
  });
  ends.push(session);
  // Without an answer it gives up its connection.
  await session.run(() => new Promise(() => {})).catch(() => undefined);
  const patient = new OrmOperations({
    database: sqlite,
    orm: await connectOrm(sqlite, options),
    timeoutMs: 60_000,
  });
  ends.push(patient);
  const all = [session.run(async () => {}), patient.run(() => new Promise(() => {}))].map(errorSummary);
  for (const each of [session, patient]) each.finishWithin(1);
  assert.equal(await Promise.all(all), Array(2).fill(['DATABASE_UNAVAILABLE', 'no', 5]));
  const later = patient.run(() => new Promise(() => {}));
  assert.equal([await errorSummary(later), isAborted], [['DATABASE_UNAVAILABLE', 'no', 5], true]);
});

test('says that the database is unavailable to operations that would connect after their time', async () => {
  const aborted = Promise.withResolvers<void>();
  const session = new OrmOperations({
    database: { ...sqlite, isFile: false },
    orm: await connectOrm(sqlite, optionsOf()),
    timeoutMs: 100,
    reconnect: async (signal) => {
      signal.throwIfAborted();
      signal.addEventListener('abort', () => aborted.resolve());
      throw new Error('it is away');
    },
  });
  ends.push(session);
  // Without an answer it gives up its connection.
  await session.run(() => new Promise(() => {})).catch(() => undefined);
  await session.run(async () => {}).catch(() => undefined);
  session.finishWithin(0);
  await aborted.promise;
  assert.equal(await errorSummary(session.run(async () => {})), ['DATABASE_UNAVAILABLE', 'no', 5]);
});

test('a close after the time of all operations waits for nothing more', async () => {
  const options = optionsOf();
  const silent = async (): Promise<OrmOperations> => {
    const orm = await connectOrm(sqlite, options);
    const database = { ...sqlite, isFile: false };
    const never = { ...orm, close: () => new Promise<never>(() => {}) };
    return new OrmOperations({ database, orm: never, timeoutMs: 500 });
  };
  const closed: string[] = [];
  const [bounded, other] = [await silent(), await silent()];
  bounded.finishWithin(0);
  await Promise.all([
    other.close().then(() => closed.push('other')),
    bounded.close().then(() => closed.push('bounded')),
  ]);
  assert.equal(closed, ['bounded', 'other']);
});

test('leaves no connection when it is closed during a reconnect', async () => {
  const options = optionsOf();
  const late = await connectOrm(sqlite, options);
  const connecting = Promise.withResolvers<Orm>();
  const session = new OrmOperations({
    database: { ...sqlite, isFile: false },
    orm: await connectOrm(sqlite, options),
    timeoutMs: 100,
    reconnect: () => connecting.promise,
  });
  // Without an answer it gives up its connection.
  await session.run(() => new Promise(() => {})).catch(() => undefined);
  const waiting = errorSummary(session.run((em) => em.execute('select 1')));
  await new Promise((resolve) => setImmediate(resolve));
  await session.close();
  connecting.resolve(late);
  assert.equal(await waiting, ['DATABASE_UNAVAILABLE', 'no', 5]);
  assert.is(await late.orm.isConnected(), false);
});

interface Harness {
  readonly session: OrmOperations;
  /** Runs a statement as another process would. */
  readonly other: (sql: string) => Promise<unknown>;
  readonly revision: () => Promise<number>;
  /** How many the session has opened. */
  readonly connections: () => number;
}

interface OpenedOptions {
  readonly timeoutMs?: number;
  readonly disk?: Disk;
}

/** A disk that is busy until its user ends each run. */
class Disk {
  times = 0;
  readonly #runs: ((failure?: Error) => void)[] = [];
  #onRun: (() => void) | undefined;

  readonly synchronize = (): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.times += 1;
    this.#runs.push((failure) => (failure === undefined ? resolve() : reject(failure)));
    this.#onRun?.();
    return promise;
  };

  /** Resolves with the end of the next run when that has begun. */
  async begun(): Promise<(failure?: Error) => void> {
    for (;;) {
      const end = this.#runs.shift();
      if (end !== undefined) return end;
      await new Promise<void>((resolve) => (this.#onRun = resolve));
    }
  }
}

/** A session on a file, until the test has ended. */
async function opened({ timeoutMs = 5_000, disk }: OpenedOptions = {}): Promise<Harness> {
  const options = optionsOf();
  const orm = await connectOrm(sqlite, options);
  const other = await connectOrm(sqlite, options);
  await migrate(sqlite, orm, 5_000);
  let connections = 1;
  const reconnect = () => {
    connections += 1;
    return connectOrm(sqlite, options);
  };
  const database = disk === undefined ? sqlite : { ...sqlite, synchronize: disk.synchronize };
  const session = new OrmOperations({ database, orm, timeoutMs, reconnect, file: folder('x.db') });
  ends.push(session, other);
  return {
    session,
    connections: () => connections,
    other: (sql) => other.connection.execute(sql),
    revision: () =>
      session.run(
        async (em, tables) => (await em.findOneOrFail(tables.revision, { name: 'registry' })).counter,
      ),
  };
}

test.run();

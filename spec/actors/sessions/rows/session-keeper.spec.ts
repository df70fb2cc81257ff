// The rows of sessions: grouped writes, bounded waits, failures of the store, and rows that another life took over.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { SessionKeeper } from '../../../../src/actors/sessions/rows/session-keeper.ts';
import { rowKeyOf, StoredRow } from '../../../../src/actors/sessions/rows/stored-row.ts';
import { databaseUnavailable } from '../../../../src/domain/errors/gateway-errors.ts';
import type { EndReason } from '../../../../src/domain/errors/session-ends.ts';
import {
  readSession,
  SESSION_VERSION,
  type SessionValue,
} from '../../../../src/domain/sessions/session-value.ts';
import { MemoryStore } from '../../../../src/persistence/memory/memory-store.ts';
import type { SessionStore } from '../../../../src/persistence/store.ts';
import { KEPT } from '../../../helpers/backends/harness.ts';
import { collectGarbage } from '../../../helpers/garbage.ts';
import { suite } from '../../../helpers/suite.ts';
import { simulatedClock, simulateTime } from '../../../helpers/time/simulated-time.ts';

const test = suite('rows of sessions');
const PROFILE = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
const NEW: SessionValue = {
  ...{ version: SESSION_VERSION, kind: 'template', template: 't', ownerId: 'ann' },
  ...{ profile: PROFILE, unsafe: 'no', uris: [] },
};
let sessions: SessionStore;
let keeper: SessionKeeper;
/** Each operation with its number of rows. */
let operations: string[];
/** What each operation does before; default nothing. */
let before: () => Promise<void>;
/** What an insert of these rows does before; default nothing. */
let beforeInsert: (rows: readonly { readonly key: string }[]) => void;
simulateTime(test, () => {
  const { sessions: stored } = new MemoryStore();
  operations = [];
  before = async () => {};
  beforeInsert = () => {};
  sessions = stored;
  const noting = async (name: string, rows: number) => {
    operations.push(`${name} ${rows}`);
    await before();
  };
  const store: SessionStore = {
    ...stored,
    insert: async (rows) => {
      await noting('insert', rows.length);
      beforeInsert(rows);
      return stored.insert(rows);
    },
    update: async (life, changes) => {
      await noting('update', changes.length);
      return stored.update(life, changes);
    },
    delete: async (life, keys) => {
      await noting('delete', keys.length);
      return stored.delete(life, keys);
    },
  };
  keeper = new SessionKeeper({ store, node: 'n', life: 'life-1--', ...KEPT, clock: simulatedClock });
});

class Session {
  readonly id: string;
  value: SessionValue = NEW;
  isTakenOver = false;

  constructor(id: string) {
    this.id = id;
  }

  async close(reason?: EndReason): Promise<void> {
    this.isTakenOver = reason === 'takenOver';
  }
}

const settled = async () => {
  for (let n = 0; n < 10; n += 1) await turn();
};
const pass = async (ms: number) => {
  await settled();
  mock.timers.tick(ms);
  await settled();
};
const storedOf = async (session: Session) => {
  const [row] = await sessions.read([rowKeyOf(session.id)]);
  return row === undefined ? undefined : readSession(row.value);
};

const unstoredOf = async (all: readonly Session[]) => {
  const stored = await Promise.all(all.map(storedOf));
  return all.filter((_, n) => stored[n] === undefined).map(({ id }) => id);
};

test('the first row is written at once, those of the next 2 ms together', async () => {
  const many = Array.from({ length: 150 }, (_, n) => new StoredRow(keeper, new Session(`s${n}`), 'new'));
  const saved = Promise.all(many.map((kept) => kept.save()));
  await pass(1);
  assert.equal(operations, ['insert 1']);
  await pass(1);
  await pass(2);
  await saved;
  assert.equal(operations, ['insert 1', 'insert 100', 'insert 49']);
});

test('a row that the database refuses keeps no other from being written', async () => {
  const refused = rowKeyOf('s7');
  beforeInsert = (rows) => {
    if (rows.some(({ key }) => key === refused)) throw new Error('the value is not accepted');
  };
  const all = Array.from({ length: 20 }, (_, n) => new Session(`s${n}`));
  for (const session of all) new StoredRow(keeper, session, 'new').changed();
  for (let groups = 0; groups < 10; groups += 1) await pass(50);
  assert.equal(await unstoredOf(all), ['s7']);
});

test('a row that the database refuses keeps no other from being written at a stop', async () => {
  const refused = rowKeyOf('s7');
  beforeInsert = (rows) => {
    if (rows.some(({ key }) => key === refused)) throw new Error('the value is not accepted');
  };
  const all = Array.from({ length: 20 }, (_, n) => new Session(`s${n}`));
  for (const session of all) new StoredRow(keeper, session, 'new').changed();
  await keeper.close();
  assert.equal(await unstoredOf(all), ['s7']);
});

test('a stop gives up soon when the database refuses all rows, and at once when it is away', async () => {
  const refusal = new Error('the disk is full');
  const all = Array.from({ length: 100 }, (_, n) => new Session(`s${n}`));
  for (const thrown of [databaseUnavailable(new Error('it is away')), refusal]) {
    operations = [];
    before = () => Promise.reject(thrown);
    for (const session of all) new StoredRow(keeper, session, 'new').changed();
    await keeper.close();
    const tries = operations.map((operation) => Number(operation.split(' ')[1]));
    assert.equal(tries, thrown === refusal ? [100, 50, 25, 13, 7, 4, 2, 1, 1] : [100]);
  }
});

test('changes within 50 ms are one write, and what is the same again is none', async () => {
  const session = new Session('s');
  const kept = new StoredRow(keeper, session, 'new');
  await kept.save();
  for (const logLevel of ['info', 'debug']) {
    session.value = { ...session.value, logLevel };
    kept.changed();
  }
  await pass(49);
  assert.equal(operations, ['insert 1']);
  await pass(1);
  assert.equal([operations.at(-1), await storedOf(session)], ['update 1', { ...NEW, logLevel: 'debug' }]);
  session.value = { ...session.value };
  kept.changed();
  await pass(1_000);
  assert.is(operations.length, 2);
});

test('the mark is written once, and stays when the session takes it back', async () => {
  const session = new Session('s');
  const kept = new StoredRow(keeper, session, 'new');
  await kept.save();
  mock.timers.tick(10);
  assert.is(kept.isUnmarked, true);
  await Promise.all([kept.writeMark(), kept.writeMark()]);
  assert.equal([kept.isUnmarked, kept.writeMark()], [false, undefined]);
  assert.equal(await storedOf(session), { ...NEW, unsafe: 'yes' });
  for (const unsafe of ['unknown', 'no', 'unknown'] as const) {
    session.value = { ...session.value, unsafe };
    kept.changed();
  }
  await pass(100);
  assert.equal(operations, ['insert 1', 'update 1']);
});

/** Whether the client was served that waits for this. */
const served = (saved: Promise<unknown> | undefined) => {
  const wait = { isOver: false };
  void saved?.then(() => {
    wait.isOver = true;
  });
  return wait;
};

test('a client waits for a slow database: its session is stored when it is answered', async () => {
  const session = new Session('s');
  const { promise, resolve } = Promise.withResolvers<void>();
  before = () => promise;
  const wait = served(new StoredRow(keeper, session, 'new').save());
  await pass(4_000);
  assert.is(wait.isOver, false);
  resolve();
  await settled();
  assert.equal([wait.isOver, keeper.counts.late, await storedOf(session)], [true, 0, NEW]);
});

test('a client waits for 5 s at most, and the next ones for 250 ms, until the database answers', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  before = () => promise;
  const first = served(new StoredRow(keeper, new Session('first'), 'new').save());
  await pass(4_999);
  assert.is(first.isOver, false);
  await pass(1);
  assert.equal([first.isOver, keeper.counts.late], [true, 1]);
  const second = served(new StoredRow(keeper, new Session('second'), 'new').save());
  await pass(250);
  assert.equal([second.isOver, keeper.counts.late], [true, 2]);
  resolve();
  await pass(5);
  before = () => new Promise(() => {});
  const third = served(new StoredRow(keeper, new Session('third'), 'new').save());
  await pass(250);
  assert.is(third.isOver, false);
});

test('a client does not wait for a write that failed, which is made again after a second', async () => {
  const session = new Session('s');
  const kept = new StoredRow(keeper, session, 'new');
  before = () => Promise.reject(databaseUnavailable(new Error('away')));
  await kept.save();
  assert.equal([keeper.counts.late, operations], [1, ['insert 1']]);
  const next = served(new StoredRow(keeper, new Session('next'), 'new').save());
  await pass(5);
  assert.equal([next.isOver, keeper.counts.late], [true, 2]);
  before = async () => {};
  await pass(1_000);
  assert.equal([operations.at(-1), await storedOf(session)], ['insert 2', NEW]);
  const done = kept.writeMark();
  await pass(5);
  await done;
  assert.is(keeper.counts.late, 2);
});

test('what changed after a row was written, but not confirmed, is written with the next attempt', async () => {
  const [session, other] = [new Session('s'), new Session('other')];
  const [kept, keptOther] = [new StoredRow(keeper, session, 'new'), new StoredRow(keeper, other, 'new')];
  await keptOther.save();
  other.value = { ...other.value, logLevel: 'info' };
  keptOther.changed();
  before = async () => {
    if (operations.at(-1)?.startsWith('update')) throw databaseUnavailable(new Error('away'));
  };
  void kept.save();
  await pass(5);
  assert.equal([operations.slice(1), await storedOf(session)], [['insert 1', 'update 1'], NEW]);
  before = async () => {};
  const marked = kept.writeMark();
  await pass(1_000);
  await marked;
  await pass(5);
  assert.equal(await storedOf(session), { ...NEW, unsafe: 'yes' });
});

test('a session that ends while its row is written leaves no row', async () => {
  const session = new Session('s');
  const { promise, resolve } = Promise.withResolvers<void>();
  before = () => promise;
  const kept = new StoredRow(keeper, session, 'new');
  void kept.save();
  kept.end('closed', false);
  const ended = kept.save();
  resolve();
  await pass(5);
  await ended;
  assert.equal([operations, await storedOf(session)], [['insert 1', 'delete 1'], undefined]);
});

test('a session that is left keeps its row, with its last change and without its end', async () => {
  const session = new Session('s');
  const kept = new StoredRow(keeper, session, 'new');
  await kept.save();
  session.value = { ...session.value, logLevel: 'info' };
  kept.changed();
  session.value = { ...session.value, endReason: 'shutDown' };
  kept.end('shutDown', true);
  await keeper.close();
  assert.equal(await storedOf(session), { ...NEW, logLevel: 'info' });
});

test('a session of more than 16 kB has no row until it is smaller', async () => {
  const session = new Session('s');
  const kept = new StoredRow(keeper, session, 'new');
  await kept.save();
  session.value = { ...NEW, uris: ['x'.repeat(17_000)] };
  kept.changed();
  await pass(50);
  assert.equal([await storedOf(session), keeper.counts.dropped], [undefined, 1]);
  assert.is(kept.writeMark(), undefined, 'nothing to wait for');
  session.value = { ...NEW, uris: ['x'] };
  kept.changed();
  await pass(50);
  assert.equal(await storedOf(session), { ...NEW, uris: ['x'], unsafe: 'yes' });
});

test('a session whose row another life took over is told so, and changes nothing', async () => {
  const session = new Session('s');
  const kept = new StoredRow(keeper, session, 'new');
  await kept.save();
  const rows = await sessions.read([kept.key]);
  await sessions.claim(rows, { node: 'm', life: 'life-2--' });
  mock.timers.tick(10);
  await kept.writeMark();
  assert.is(session.isTakenOver, true);
  assert.is(keeper.counts.heldElsewhere, 1);
  assert.equal(await storedOf(session), NEW);
  kept.end('closed', false);
  await pass(100);
  assert.equal(await storedOf(session), NEW);
});

test('a row that is gone is written again', async () => {
  const session = new Session('s');
  const kept = new StoredRow(keeper, session, 'new');
  await kept.save();
  await sessions.delete('life-1--', [kept.key]);
  session.value = { ...NEW, logLevel: 'info' };
  kept.changed();
  await pass(50);
  await pass(50);
  assert.equal(await storedOf(session), { ...NEW, logLevel: 'info' });
});

test('a client that waits for a row that is not stored is told that it is not', async () => {
  const large = new Session('large');
  large.value = { ...NEW, uris: ['x'.repeat(17_000)] };
  const saved = new StoredRow(keeper, large, 'new').save();
  await pass(5);
  assert.is(await saved, false, 'too large');
  assert.is(keeper.counts.late, 0, 'the database answers');

  const taken = new Session('taken');
  const kept = new StoredRow(keeper, taken, 'new');
  await kept.save();
  await sessions.claim(await sessions.read([kept.key]), { node: 'm', life: 'life-2--' });
  taken.value = { ...NEW, logLevel: 'info' };
  const changed = kept.save();
  await pass(5);
  assert.equal([await changed, taken.isTakenOver], [false, true]);
});

test('a row whose last change is not written is not released; the others are', async () => {
  keeper = new SessionKeeper({
    ...{ store: keeper.store, node: 'n', life: 'life-1--', ...KEPT, clock: simulatedClock },
    holders: { decideSession: async () => ({ do: 'recover' }) },
  });
  const kept = ['changed', 'same', 'same too'].map((id) => {
    const session = new Session(id);
    return { session, row: new StoredRow(keeper, session, 'new') };
  });
  for (const { row } of kept) {
    void row.save();
    await pass(5);
  }
  for (const { session } of kept.slice(0, 1)) session.value = { ...NEW, unsafe: 'yes' };
  before = async () => {
    if (operations.at(-1)?.startsWith('update')) throw databaseUnavailable(new Error('refused'));
  };
  for (const { row } of kept) row.end('drained', true);
  await pass(5);
  const rows = await sessions.read(kept.map(({ row }) => row.key));
  const lifeOf = (wanted: string) => rows.find(({ key }) => key === wanted)?.life;
  assert.equal(
    kept.map(({ row }) => lifeOf(row.key)),
    ['life-1--', 'released', 'released'],
    'a stale row is not given to another node',
  );
});

test('a row that is to be released while the last ones are is released, too', async () => {
  const keys = ['one', 'two'].map(rowKeyOf);
  const claims = async (ticks: number) => {
    const { sessions: store } = new MemoryStore();
    const usedAt = new Date().toISOString();
    const row = { node: 'n', life: 'life-1--', generation: 1, value: '{}', usedAt };
    await store.insert(keys.map((key) => ({ key, ...row })));
    const own = new SessionKeeper({
      ...{ node: 'n', life: 'life-1--', ...KEPT, clock: simulatedClock },
      holders: { decideSession: async () => ({ do: 'recover' }) },
      store: {
        ...store,
        claim: async (rows, by) => {
          const claimed = await store.claim(rows, by);
          if (rows[0]?.key === keys[0]) void releaseAfter(ticks);
          return claimed;
        },
      },
    });
    const releaseAfter = async (left: number): Promise<void> => {
      for (let tick = 0; tick < left; tick += 1) await undefined;
      own.release(keys[1] ?? '');
    };
    own.release(keys[0] ?? '');
    await settled();
    return (await store.read(keys)).map(({ life }) => life);
  };
  for (let ticks = 0; ticks < 8; ticks += 1)
    assert.equal(await claims(ticks), ['released', 'released'], `${ticks} ticks after the claim`);
});

test('rows of earlier lives are bounded shortly after the start, and go after the idle time', async () => {
  const old = (n: number, usedAt: string) => ({
    ...{ key: rowKeyOf(`${n}`), node: 'n', life: 'life-0--', generation: 1, value: '{}' },
    usedAt,
  });
  const rows = Array.from({ length: 5 }, (_, n) => old(n, `2026-01-01T00:00:0${n}.000Z`));
  await sessions.insert(rows);
  const options = { node: 'n', life: 'life-1--', clock: simulatedClock, maxSessions: 1, idleMs: 60_000 };
  const other = new SessionKeeper({ store: sessions, ...options });
  other.begin();
  await settled();
  const keys = rows.map(({ key }) => key);
  assert.is((await sessions.read(keys)).length, 5, 'the start does not wait for it');
  await pass(10_000);
  assert.is((await sessions.read(keys)).length, 2);
  await pass(50_000);
  assert.is((await sessions.read(keys)).length, 0);
  await other.close();
});

test('a wait for a write leaves nothing when it is over', async () => {
  const heapBytesAfter = async (waits: number) => {
    for (let count = 0; count < waits; count += 1) await keeper.waitForWrite(Promise.resolve(true));
    await turn();
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = await heapBytesAfter(1_000);
  const bytes = (await heapBytesAfter(20_000)) - before;
  assert.ok(bytes < 2_000_000, `${bytes} bytes`); // it was 6,100,000
});

test.run();

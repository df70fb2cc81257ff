// Tests of a store on every database server besides the conformance suites: many processes, lost sessions, newer versions.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { ApiKey } from '../../../src/domain/accounts/account.ts';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import type { AuditEntry } from '../../../src/domain/events/audit-entries.ts';
import { migrationStatus, openStore } from '../../../src/persistence/open-store.ts';
import { connectOrm } from '../../../src/persistence/orm/connection/orm.ts';
import { OrmOperations } from '../../../src/persistence/orm/connection/orm-operations.ts';
import { rowOfApiKey } from '../../../src/persistence/orm/parts/orm-accounts.ts';
import { ormNodes } from '../../../src/persistence/orm/parts/orm-nodes.ts';
import type { Store } from '../../../src/persistence/store.ts';
import { ada } from '../../conformance/accounts.ts';
import { serverLine } from '../../helpers/network/server-line.ts';
import { endOf } from '../../helpers/outcome.ts';
import { freshDatabase, type Service } from '../../helpers/services/services.ts';
import { executeSql } from '../../helpers/services/sql.ts';
import type { Suite } from '../../helpers/suite.ts';
import { connect, connectOptions, parsed } from '../../persistence/connect-options.ts';
import { failureOf } from '../../persistence/open-failure.ts';
import { openInProcesses } from '../../persistence/orm/open-in-processes.ts';
import { rekeyBehaviour } from '../../persistence/orm/rekey-behaviour.ts';
import { schemaDifference } from '../../persistence/orm/schema-difference.ts';
import { fatesOfChanges, freshStore, reachable, UNDONE } from './server-stores.ts';

/** What differs between the servers. */
export interface ServerWords {
  /** Ends every session of the database, except its own. */
  endSessions(database: string): string;
}

const openOptions = { cwd: '/', migrations: 'apply' } as const;
const at = '2026-01-02T03:04:05.678Z';
const key: ApiKey = { id: '', name: 'k', permissions: ['admin'], secretHash: 'f'.repeat(64), createdAt: at };
const entry: AuditEntry = {
  id: '',
  at,
  actor: 'local',
  actorName: 'ada',
  action: 'POST /auth/users',
  subject: 's',
  status: 201,
};
const template = { name: 'demo', loadBalancer: { timeout: 5 } };

/** Declares the tests in `test`, whose time limit should be generous. */
export function serverBehaviour(test: Suite, service: Service, words: ServerWords): void {
  const declare = (name: string, body: (url: string) => Promise<void>) =>
    test.needs(service.url, service.skip)(name, async () => {
      const { url, drop } = await freshDatabase(reachable(service));
      try {
        await body(url);
      } finally {
        await drop();
      }
    });

  declare('has one clean schema after eight processes started concurrently', async (url) => {
    const outcomes = await openInProcesses(url, 8);
    assert.equal(outcomes, Array(8).fill('open'));
    const status = await migrationStatus(url, { cwd: '/' });
    assert.ok(status.applied.length > 0);
    assert.equal(
      [new Set(status.applied).size, status.pending, status.unknown],
      [status.applied.length, [], []],
    );
    const store = await openStore(url, { ...openOptions, migrations: 'require' });
    await store.templates.save(template);
    assert.is(await store.revision(), 8 + 1);
    await store.close();
  });

  rekeyBehaviour(declare);

  declare('creates a missing database once, also with concurrent starts', async (url) => {
    const missing = new URL(url);
    missing.pathname += '_new';
    const name = missing.pathname.slice(1);
    try {
      const refused = failureOf(openStore(missing.href, { cwd: '/', migrations: 'require' }));
      assert.match(await refused, `has no database "${name}"`);
      const reported: string[] = [];
      const onNotice = (line: string) => void reported.push(line);
      const stores = await Promise.all(
        [1, 2, 3].map(() => openStore(missing.href, { ...openOptions, onNotice })),
      );
      assert.equal(reported, [`created the database "${name}"`]);
      for (const store of stores) assert.is(await store.revision(), 0);
      await Promise.all(stores.map((store) => store.close()));
    } finally {
      await executeSql(url, `drop database if exists ${name}`);
    }
  });

  declare('refuses missing tables, and tables of a newer version', async (url) => {
    const requiring = { cwd: '/', migrations: 'require' } as const;
    assert.match(await failureOf(openStore(url, requiring)), 'has no tables yet');
    await (await openStore(url, openOptions)).close();
    await (await openStore(url, requiring)).close();
    await executeSql(url, `insert into stagedoor_migrations (name) values ('Migration29991231_newer')`);
    for (const migrations of ['apply', 'require'] as const)
      assert.match(
        await failureOf(openStore(url, { cwd: '/', migrations })),
        /newer version .*Migration29991231_newer/,
      );
  });

  declare('has the schema of the entities', async (url) => {
    await (await openStore(url, openOptions)).close();
    const orm = await connect(url);
    try {
      assert.is(await schemaDifference(orm), '');
      await executeSql(url, 'alter table users drop column email');
      assert.match(await schemaDifference(orm), 'email');
    } finally {
      await orm.close();
    }
  });

  declare('fails within 4 s when the server goes silent, and recovers', async (url) => {
    const line = await serverLine(url);
    const store = await openStore(line.url, { ...openOptions, statementTimeoutMs: 1_000 });
    try {
      await Promise.all(Array.from({ length: 12 }, () => store.templates.list()));
      line.silence();
      for (let round = 0; round < 2; round += 1) {
        const startedAt = performance.now();
        const codes = await Promise.all([
          ...Array.from({ length: 12 }, () => endOf(store.templates.list())),
          settled(store),
          settled(store),
        ]);
        assert.equal(new Set(codes), new Set(['DATABASE_UNAVAILABLE']));
        assert.ok(performance.now() - startedAt < 4_000);
      }
      await line.mend();
      await withinTries(() => store.templates.save(template));
      assert.equal(await store.templates.list(), [template]);
    } finally {
      await store.close();
      await line.close();
    }
  });

  declare('keeps its connections when the process stood still', async (url) => {
    await (await openStore(url, openOptions)).close();
    const { database } = parsed(url);
    let opened = 0;
    const open = async () => {
      opened += 1;
      return connect(url);
    };
    const session = new OrmOperations({ database, orm: await open(), reconnect: open, timeoutMs: 1_000 });
    try {
      await session.probe();
      const answering = session.probe();
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500);
      await answering;
      await session.probe();
      assert.is(opened, 1);
    } finally {
      await session.close();
    }
  });

  declare('sends a heartbeat while another writer of the process waits', async (url) => {
    await (await openStore(url, openOptions)).close();
    const session = new OrmOperations({
      database: parsed(url).database,
      orm: await connect(url),
      timeoutMs: 5_000,
    });
    const { promise: isOver, resolve } = Promise.withResolvers<void>();
    try {
      const waiting = session.write(() => isOver);
      await ormNodes(session).beat('life-aaa', '{}');
      resolve();
      await waiting;
    } finally {
      await session.close();
    }
  });

  declare('answers the pings of all nodes at once after an outage', async (url) => {
    await (await openStore(url, openOptions)).close();
    const { database } = parsed(url);
    const sessions: OrmOperations[] = [];
    for (let count = 0; count < 4; count += 1)
      sessions.push(new OrmOperations({ database, orm: await connect(url), timeoutMs: 5_000 }));
    const outage = () => Promise.reject(databaseUnavailable(undefined));
    try {
      for (let round = 0; round < 5; round += 1) {
        await Promise.all(sessions.map((session) => endOf(session.change(outage))));
        const ends = await Promise.all(sessions.map((session) => endOf(session.probe())));
        assert.equal(ends, ['done', 'done', 'done', 'done']);
      }
      const rows = await sessions[0]?.run((em, { settings }) => em.count(settings));
      assert.is(rows, 0);
    } finally {
      await Promise.all(sessions.map((session) => session.close()));
    }
  });

  declare(
    'keeps no row of a node or a program locked for a node that is cut off within its change',
    async (url) => {
      const other = await openStore(url, openOptions);
      const lives = ['life-aaa', 'life-bbb', 'life-ccc'];
      const cuts: [words: RegExp, change: (store: Store) => Promise<unknown>][] = [
        [/update .nodes/, (store) => store.nodes.beat('life-aaa', '{}')],
        [/update .nodes/, (store) => store.nodes.end('life-bbb', 1, { cause: 'expired', frees: 'all' })],
        [/update .programs/, (store) => store.programs.take('program', 1, 'life-ccc')],
      ];
      const left: Promise<unknown>[] = [];
      const closing: (() => Promise<void>)[] = [() => other.close()];
      try {
        for (const life of lives)
          await other.nodes.insert({
            ...{ life, node: life, counter: 1, profile: '{}', state: '{}', end: undefined },
          });
        await other.programs.take('program', 0, 'life-aaa');
        for (const [silentAfter, change] of cuts) {
          const line = await serverLine(url, { silentAfter });
          const store = await openStore(line.url, openOptions);
          closing.unshift(() => store.close(), line.close);
          left.push(endOf(change(store)));
        }
        const isDone = async () => {
          const ended = (await other.nodes.list()).find(({ life }) => life === 'life-bbb')?.end;
          return ended !== undefined && (await other.programs.list())[0]?.generation === 2;
        };
        for (let tries = 0; tries < 100 && !(await isDone()); tries += 1) await delay(20);
        // A locked row makes this wait for 4 s, and fail.
        assert.is(await other.nodes.end('life-aaa', undefined, { cause: 'expired', frees: 'all' }), true);
        assert.is(await other.programs.take('program', 2, 'life-aaa'), true);
        assert.is(await other.nodes.end('life-bbb', undefined, { cause: 'expired', frees: 'all' }), false);
        assert.equal(await Promise.all(left), Array(3).fill('DATABASE_UNAVAILABLE'));
      } finally {
        for (const close of closing) await close();
      }
    },
  );

  declare('reports a change as not delivered when nothing listens any more', async (url) => {
    const line = await serverLine(url);
    const store = await openStore(line.url, openOptions);
    try {
      await line.close();
      for (let round = 0; round < 2; round += 1) assert.equal(await fatesOfChanges(store), UNDONE);
    } finally {
      await store.close();
    }
  });

  declare('writes large batches over a slow connection within half of the time limit', async (url) => {
    await (await openStore(url, openOptions)).close();
    const keys = Array.from({ length: 1_000 }, (_, index) => String(index).padStart(16, '0'));
    const near = await connect(url);
    const rows = keys.map((id, position) => ({ ...rowOfApiKey({ ...key, id }), position }));
    await near.orm.em.fork().insertMany(near.tables.apiKeys, rows);
    await near.close();
    const line = await serverLine(url, { delayMs: 5 });
    const store = await openStore(line.url, openOptions);
    const { audit, accounts } = store;
    try {
      const pingMs = await msOf(() => store.ping());
      assert.ok(pingMs >= 10, `a question takes ${pingMs} ms`);
      const entries = Array.from({ length: 500 }, (_, index) => ({
        ...entry,
        id: String(index).padStart(6, '0'),
      }));
      const appendMs = await msOf(() => audit.append(entries));
      const touchMs = await msOf(() => accounts.touchApiKeys(new Map(keys.map((id) => [id, at]))));
      assert.ok(appendMs < 2_500 && touchMs < 2_500, `${appendMs} ms, ${touchMs} ms`);
      assert.equal(await audit.list({ limit: 1_000 }), entries.toReversed());
      assert.equal(
        new Set((await accounts.findApiKeys()).map(({ lastUsedAt }) => lastUsedAt)),
        new Set([at]),
      );
    } finally {
      await store.close();
      await line.close();
    }
  });

  declare('loses no change of concurrent gateways, and keeps the last admin', async (url) => {
    const stores = await Promise.all([1, 2, 3].map(() => openStore(url, openOptions)));
    const [first] = stores;
    assert.ok(first);
    const before = await first.revision();
    await Promise.all(
      stores.flatMap((store, node) =>
        Array.from({ length: 20 }, (_, index) =>
          store.templates.save({
            name: `template-${(index + node) % 20}`,
            loadBalancer: { timeout: node + 1 },
          }),
        ),
      ),
    );
    assert.is((await first.templates.list()).length, 20);
    assert.is(await first.revision(), before + 60);
    for (const [node, store] of stores.entries()) {
      await store.accounts.insertUser({ ...ada, id: `user-${node}`, username: `admin-${node}` });
    }
    const endings = await Promise.all(
      stores.map((store, node) =>
        endOf(store.accounts.changeUser(`user-${node}`, { role: 'user', updatedAt: at })),
      ),
    );
    assert.equal(endings.toSorted(), ['LAST_ADMIN', 'done', 'done']);
    await Promise.all(stores.map((store) => store.close()));
  });

  test.needs(service.url, service.skip)(
    'ends a transaction of a node that stands still, with its locks',
    async () => {
      const store = await freshStore(service);
      await store.templates.save(template);
      const { database } = parsed(store.url);
      const frozen = await connectOrm(database, { ...connectOptions(store.url), idleTransactionMs: 1_500 });
      const { standing, thaw } = await standStill(frozen, 'update templates set name = name');
      const ms = await msOf(() =>
        withinTries(() => store.templates.save({ ...template, loadBalancer: { timeout: 7 } })),
      );
      assert.ok(ms > 500 && ms < 20_000, `${ms} ms`);
      thaw();
      assert.is.not(await standing, 'done');
      await frozen.close(); // the lost connection is in use no more
      await store.close();
    },
  );

  test.needs(service.url, service.skip)(
    'carries out a change that waits for a node that stands still, instead of refusing it',
    async () => {
      const store = await freshStore(service);
      const frozen = await connectOrm(parsed(store.url).database, connectOptions(store.url));
      const { standing, thaw } = await standStill(frozen, 'update revision set counter = counter');
      let outcome = '';
      const ms = await msOf(async () => {
        outcome = await endOf(store.templates.save(template));
      });
      assert.equal([outcome, ms < 10_000], ['done', true], `${Math.round(ms)} ms`);
      thaw();
      assert.is.not(await standing, 'done');
      await frozen.close();
      await store.close();
    },
  );

  test.needs(service.url, service.skip)(
    'stores and claims sessions, and touches settings, while a change waits for a node that stands still',
    async () => {
      const store = await freshStore(service);
      const slow = { ...connectOptions(store.url), statementTimeoutMs: 60_000 }; // it is not ended meanwhile
      const frozen = await connectOrm(parsed(store.url).database, slow);
      const { standing, thaw } = await standStill(frozen, 'update revision set counter = counter');
      let hasEnded = false;
      const change = endOf(store.templates.save(template)).finally(() => {
        hasEnded = true;
      });
      const row = { key: 'k', node: 'a', life: 'life-aaa', generation: 1, value: 'v', usedAt: at };
      await store.sessions.insert([row]);
      await store.sessions.update(row.life, [{ key: 'k', value: 'w', usedAt: at }]);
      const claimed = await store.sessions.claim([row], { node: 'b', life: 'life-bbb' });
      assert.equal(
        claimed.map(({ life, generation, value }) => [life, generation, value]),
        [['life-bbb', 2, 'w']],
      );
      await store.sessions.delete('life-bbb', ['k']);
      await store.settings.touch('name');
      assert.not.ok(hasEnded);
      thaw();
      assert.equal([await standing, await change], ['done', 'done']);
      await frozen.close();
      await store.close();
    },
  );

  test.needs(service.url, service.skip)('recovers by itself when its sessions are ended', async () => {
    const store = await freshStore(service);
    const name = new URL(store.url).pathname.slice(1);
    for (let round = 0; round < 3; round += 1) {
      // Several connections, so that some of them are idle and some in use when they end.
      const work = Array.from({ length: 20 }, () => settled(store));
      await executeSql(reachable(service).url, words.endSessions(name));
      const codes = (await Promise.all(work)).filter((code) => code !== 'done');
      assert.equal(
        codes.filter((code) => code !== 'DATABASE_UNAVAILABLE'),
        [],
      );
      await withinTries(() => store.templates.save({ name: `round-${round}`, loadBalancer: {} }));
    }
    assert.is((await store.templates.list()).filter(({ name }) => name.startsWith('round-')).length, 3);
    await store.close();
  });
}

/** A node that stands still in a transaction after this statement, until `thaw`; `standing` resolves with the end of the transaction. */
async function standStill({ connection }: Awaited<ReturnType<typeof connectOrm>>, statement: string) {
  const { promise: isFrozen, resolve: thaw } = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const standing = endOf(
    connection.transactional(async (context) => {
      await connection.execute(statement, [], 'run', context);
      locked.resolve();
      await isFrozen;
    }),
  );
  const end = await Promise.race([locked.promise, standing]);
  if (end !== undefined) throw new Error(`it could not stand still: ${end}`);
  return { standing, thaw };
}

async function msOf(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

function settled(store: Store): Promise<string> {
  return endOf(store.templates.save(template));
}

/** A pool may notice ended sessions one by one: at most as many failures as it has connections. */
async function withinTries(work: () => Promise<unknown>): Promise<void> {
  for (let left = 10; ; left -= 1) {
    const end = await endOf(work());
    if (end === 'done') return;
    if (left === 0 || end !== 'DATABASE_UNAVAILABLE') throw new Error(end);
  }
}

// Tests of a store that encrypts its secrets with another key, for SQLite and each database server.

import { createHash } from 'node:crypto';
import * as assert from 'uvu/assert';
import { type Cipher, createCipher } from '../../../src/persistence/cipher.ts';
import type { OAuthRow } from '../../../src/persistence/oauth-store.ts';
import { openStore } from '../../../src/persistence/open-store.ts';
import type { Store, StoredSession } from '../../../src/persistence/store.ts';
import { definition } from '../../helpers/backends/profiles.ts';
import { errorOf } from '../../helpers/outcome.ts';

const key = (byte: number) => new Uint8Array(32).fill(byte);
const [old, next, lost] = [key(1), key(2), key(3)];
const at = '2026-01-02T03:04:05.678Z';

const both = { env: { TOKEN: 'planted' }, headers: { Authorization: 'planted' } };
const instances = [
  definition('both', { template: 'demo', transport: 'stdio', command: 'run', ...both }),
  definition('one', { template: 'demo', transport: 'stdio', command: 'run', env: both.env }),
  definition('none', { template: 'demo', transport: 'stdio', command: 'run' }),
];
const keyOf = (text: string) => createHash('sha256').update(text).digest('hex');
/** More than two groups, and each value of its own. */
const sessions = Array.from(
  { length: 230 },
  (_, index): StoredSession => ({
    ...{ key: keyOf(`session ${index}`), node: 'n', life: 'life-1--', generation: 1 },
    ...{ value: `{"planted":${index}}`, usedAt: at },
  }),
);
const oauth: Omit<OAuthRow, 'version'> = {
  ...{ kind: 'connecting', key: keyOf('oauth'), grantId: undefined, userId: 'u', clientKey: undefined },
  ...{ createdAt: at, usedAt: undefined, consumedAt: undefined, expiresAt: undefined, value: 'planted' },
};
/** Two of `both`, one of `one`, one of the table oauth. */
const TEXTS = 4 + sessions.length;

/** `declare` declares a test that gets the URL of an empty database. */
export function rekeyBehaviour(declare: (name: string, body: (url: string) => Promise<void>) => void): void {
  declare('encrypts all again with the first key, once, and then needs no other', async (url) => {
    const { revision, version } = await within(url, createCipher([old]), async (store) => {
      await fill(store);
      return stateOf(store);
    });
    await within(url, createCipher([next, old]), async (store) => {
      const progress: number[] = [];
      const first = await store.rekey((texts) => progress.push(texts));
      assert.equal(first, { done: TEXTS, current: 0, unreadable: 0, reasons: [] });
      assert.equal([progress.toSorted((a, b) => a - b), progress.at(-1)], [progress, TEXTS]);
      assert.equal(await store.rekey(), { done: 0, current: TEXTS, unreadable: 0, reasons: [] });
    });
    await within(url, createCipher([next]), async (store) => {
      assert.equal(await contents(store), {
        ...{ instances, sessions: sorted(sessions), oauth: [{ ...oauth, version }] },
      });
      assert.is((await stateOf(store)).revision, revision);
    });
  });

  declare('encrypts what was stored without a key', async (url) => {
    const [session] = sessions;
    assert.ok(session);
    await within(url, undefined, async (store) => {
      await store.sessions.insert([session]);
      await store.oauth.save(oauth);
      assert.is((await errorOf(store.rekey())).code, 'CONFIG_INCOMPLETE');
    });
    await within(url, createCipher([next]), async (store) => {
      assert.equal(await store.rekey(), { done: 2, current: 0, unreadable: 0, reasons: [] });
      assert.equal(await store.sessions.read([session.key]), [session]);
      assert.equal(await store.oauth.find(oauth.kind, [oauth.key]), [{ ...oauth, version: 1 }]);
    });
    await within(url, undefined, async (store) => assert.equal(await store.sessions.read([session.key]), []));
  });

  declare('names what no key decrypts, leaves it, and goes on with the others', async (url) => {
    await within(url, createCipher([lost]), fill);
    const other = definition('other', {
      template: 'demo',
      transport: 'stdio',
      command: 'run',
      env: both.env,
    });
    await within(url, createCipher([old]), (store) => store.instances.save(other));
    await within(url, createCipher([next, old]), async (store) => {
      const { reasons, ...counts } = await store.rekey();
      assert.equal(counts, { done: 1, current: 0, unreadable: TEXTS });
      assert.is(reasons.length, 100);
      const found = reasons
        .map((line) => line.replace(/ cannot be read: encrypted with the key \w{8}, .*/, ''))
        .toSorted();
      for (const name of ['"env" of the instance demo/both', '"headers" of the instance demo/both'])
        assert.ok(found.includes(name), found.join());
      assert.ok(found.includes(`the row "connecting" ${oauth.key} of the table oauth`));
      assert.not.match(reasons.join(), 'planted');
    });
    await within(url, createCipher([lost]), async (store) =>
      assert.equal((await contents(store)).sessions, sorted(sessions)),
    );
  });

  declare('keeps what a gateway changed meanwhile, and brings back nothing that it deleted', async (url) => {
    // In one group, in this order.
    const [first, changed, deleted] = sorted(sessions)
      .slice(0, 60)
      .filter((_, index) => index % 29 === 0);
    assert.ok(first && changed && deleted);
    await within(url, createCipher([old]), async (gateway) => {
      await fill(gateway);
      let isChanged = false;
      const meanwhile = async () => {
        await gateway.sessions.update(changed.life, [{ key: changed.key, value: 'newer', usedAt: at }]);
        await gateway.sessions.delete(deleted.life, [deleted.key]);
        isChanged = true;
      };
      let change: Promise<void> | undefined;
      const seen: unknown[] = [];
      // The rows of the group have been read when the first one is decrypted.
      const cipher = createCipher([next, old]);
      const watching: Cipher = {
        ...cipher,
        decrypt: (encrypted, purpose) => {
          if (purpose.endsWith(first.key)) change ??= meanwhile();
          const text = cipher.decrypt(encrypted, purpose);
          if (purpose.endsWith(changed.key) || purpose.endsWith(deleted.key)) seen.push([text, isChanged]);
          return text;
        },
      };
      await within(url, watching, async (store) => {
        const { done, unreadable } = await store.rekey();
        await change;
        assert.equal([done, unreadable], [TEXTS - 1, 0]);
      });
      // The change was made before their turn, and they had been read before it.
      assert.equal(seen, [
        [changed.value, true],
        ['newer', true],
        [deleted.value, true],
      ]);
      assert.equal(await gateway.sessions.read([changed.key]), []);
    });
    await within(url, createCipher([next]), async (store) => {
      const rest = sessions.filter(({ key }) => key !== deleted.key);
      const expected = rest.map((each) => (each.key === changed.key ? { ...each, value: 'newer' } : each));
      assert.equal((await contents(store)).sessions, sorted(expected));
    });
  });
}

async function within<T>(
  url: string,
  cipher: Cipher | undefined,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const store = await openStore(url, { cwd: '/', cipher, migrations: 'apply' });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

async function fill(store: Store): Promise<void> {
  await store.instances.saveMany(instances.map((each) => ({ definition: each })));
  for (const rows of groups(sessions)) await store.sessions.insert(rows);
  await store.oauth.save(oauth);
}

async function contents(store: Store) {
  const read = await Promise.all(
    groups(sessions).map((rows) => store.sessions.read(rows.map(({ key }) => key))),
  );
  return {
    instances: await store.instances.list(),
    sessions: sorted(read.flat()),
    oauth: await store.oauth.find(oauth.kind, [oauth.key]),
  };
}

async function stateOf(store: Store) {
  const [row] = await store.oauth.find(oauth.kind, [oauth.key]);
  return { revision: await store.revision(), version: row?.version };
}

function groups(rows: readonly StoredSession[]): StoredSession[][] {
  return [rows.slice(0, 100), rows.slice(100, 200), rows.slice(200)];
}

function sorted(rows: readonly StoredSession[]): StoredSession[] {
  return rows.toSorted((one, other) => (one.key < other.key ? -1 : 1));
}

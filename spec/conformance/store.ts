// The conformance tests for a Store. Each store's spec runs them before its own tests.

import * as assert from 'uvu/assert';
import type { InstanceDefinition, TemplateAuth } from '../../src/domain/instances/instance.ts';
import type { Store } from '../../src/persistence/store.ts';
import { endOf } from '../helpers/outcome.ts';
import type { Suite } from '../helpers/suite.ts';

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function storeConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open);

  declare('is empty at first, answers a ping and has a name', async (store) => {
    const found = [await store.templates.list(), await store.instances.list()];
    assert.equal(found, [[], []]);
    await store.ping();
    assert.ok(store.kind.length > 0);
  });

  declare('merges the settings of a template by its name', async (store) => {
    await store.templates.save({ name: 'demo', loadBalancer: { max_retries: 0, session: 'shared' } });
    await store.templates.save({ name: 'other', loadBalancer: { strategy: 'random' } });
    const loadBalancer = { strategy: 'weighted', health_check_interval: 15, timeout: 30 } as const;
    await store.templates.save({ name: 'demo', loadBalancer: { ...loadBalancer, session: null } });
    assert.equal(sortedBy(await store.templates.list(), 'name'), [
      { name: 'demo', loadBalancer: { max_retries: 0, ...loadBalancer } },
      { name: 'other', loadBalancer: { strategy: 'random' } },
    ]);
  });

  declare('keeps `auth` of a template until it is replaced or removed', async (store) => {
    const auth: TemplateAuth = { mode: 'oauth', who: 'user', scopes: ['read'] };
    const seen: unknown[] = [];
    for (const change of [{ auth }, {}, { auth: { mode: 'none' as const } }, { auth: null }]) {
      await store.templates.save({ name: 'demo', loadBalancer: {}, ...change });
      seen.push((await store.templates.list())[0]);
    }
    const saved = { name: 'demo', loadBalancer: {} };
    assert.equal(seen, [{ ...saved, auth }, { ...saved, auth }, { ...saved, auth: { mode: 'none' } }, saved]);
  });

  declare('deletes a template without instances, and returns whether it did', async (store) => {
    for (const name of ['demo', 'other']) await store.templates.save({ name, loadBalancer: {} });
    await store.instances.save({ ...smallest, template: 'other' });
    assert.equal(
      [
        (await store.templates.delete('demo')) !== undefined,
        await store.templates.delete('demo'),
        await store.templates.delete('none'),
        await store.templates.delete('other'),
      ],
      [true, undefined, undefined, undefined],
    );
    assert.equal(await store.templates.list(), [{ name: 'other', loadBalancer: {} }]);
    assert.is((await store.instances.list()).length, 1);
    await store.templates.save({ name: 'demo', loadBalancer: { timeout: 5 } });
    assert.is((await store.templates.list()).length, 2);
  });

  declare('gives back every field of an instance as it was saved', async (store) => {
    for (const definition of [fullHttp, fullStdio, smallest]) await store.instances.save(definition);
    const listed = sortedBy(await store.instances.list(), 'id');
    assert.equal(listed, sortedBy([fullHttp, fullStdio, smallest], 'id'));
  });

  declare('gives back the longest instance that can be registered', async (store) => {
    const longest = {
      ...smallest,
      command: 'ü'.repeat(8_192),
      workingDir: `/${'\\'.repeat(4_095)}`,
      args: Array.from({ length: 256 }, (_, index) => `'${index}`.padEnd(8_192, index % 2 === 0 ? 'x' : '"')),
      nodeId: 'n'.repeat(128),
    };
    await store.instances.save(longest);
    assert.equal(await store.instances.list(), [longest]);
  });

  declare('gives back ids, names and server ids of the greatest length', async (store) => {
    const template = 't'.repeat(128);
    const longest = {
      ...smallest,
      template,
      id: 'i'.repeat(128),
      serverId: `${template}.${'i'.repeat(128)}`,
    };
    await store.templates.save({ name: template, loadBalancer: {} });
    await store.instances.save(longest);
    assert.equal(await store.instances.list(), [longest]);
    assert.equal(await store.templates.list(), [{ name: template, loadBalancer: {} }]);
    await store.instances.delete(template, longest.id, 'f'.repeat(64));
    assert.is((await store.instances.findTombstones(template, [longest.id])).get(longest.id), 'f'.repeat(64));
  });

  declare('lists in the order of the first saving', async (store) => {
    for (const name of ['c', 'a', 'b', 'a']) {
      await store.templates.save({ name, loadBalancer: {} });
      await store.instances.save({ ...smallest, id: name, serverId: `server-${name}` });
    }
    const names = (await store.templates.list()).map(({ name }) => name);
    assert.equal(names, ['c', 'a', 'b']);
    const ids = (await store.instances.list()).map(({ id }) => id);
    assert.equal(ids, ['c', 'a', 'b']);
  });

  declare('refuses a server id that another instance has, and changes nothing then', async (store) => {
    const other = { ...smallest, id: 'other', serverId: 'other' };
    await store.instances.save(smallest);
    await store.instances.save(other);
    const before = await store.revision();
    assert.is(await endOf(store.instances.save({ ...smallest, id: 'third' })), 'DUPLICATE_SERVER');
    assert.is(
      await endOf(store.instances.save({ ...other, serverId: smallest.serverId })),
      'DUPLICATE_SERVER',
    );
    assert.is(await endOf(store.instances.save({ ...smallest, template: 'else' })), 'DUPLICATE_SERVER');
    assert.equal(await store.instances.list(), [smallest, other]);
    assert.is(await store.revision(), before);
    await store.instances.delete(smallest.template, smallest.id);
    await store.instances.save({ ...smallest, id: 'third' });
    assert.is((await store.instances.list()).length, 2);
  });

  declare(
    'refuses an instance whose secrets could not be read, and keeps the one that is there',
    async (store) => {
      await store.instances.save(fullStdio);
      const before = await store.revision();
      const code = await endOf(store.instances.save({ ...fullStdio, env: {}, locked: 'no key' }));
      assert.is(code, 'CONFIG_INCOMPLETE');
      assert.equal([await store.instances.list(), await store.revision()], [[fullStdio], before]);
    },
  );

  declare('of many instances with the same server id, saved at once, one is stored', async (store) => {
    const rivals = Array.from({ length: 8 }, (_, index) => ({ ...smallest, id: `rival-${index}` }));
    const codes = await Promise.all(rivals.map((rival) => endOf(store.instances.save(rival))));
    assert.equal(codes.filter((code) => code === 'done').length, 1);
    assert.equal(codes.filter((code) => code === 'DUPLICATE_SERVER').length, 7);
    assert.is((await store.instances.list()).length, 1);
  });

  declare('counts a revision for every change of the registry, and for nothing else', async (store) => {
    let last = await store.revision();
    const changes = async (work: () => Promise<unknown>): Promise<boolean> => {
      const made = await work();
      const now = await store.revision();
      const hasChanged = now !== last;
      if (hasChanged) assert.equal([made, now], [last + 1, last + 1]);
      last = now;
      return hasChanged;
    };
    assert.equal(
      [
        await changes(() => store.templates.save({ name: 'demo', loadBalancer: {} })),
        await changes(() => store.instances.save(smallest)),
        await changes(() => store.instances.save(smallest)),
        await changes(() => store.instances.delete(smallest.template, smallest.id)),
        await changes(() => store.templates.delete('demo')),
      ],
      [true, true, true, true, true],
    );
    assert.equal(
      [
        await changes(() => store.instances.delete(smallest.template, smallest.id)),
        await changes(() => store.templates.delete('demo')),
        await changes(() => store.instances.list()),
        await changes(() => store.settings.exchange('name', undefined, 'value')),
        await changes(() => store.ping()),
      ],
      [false, false, false, false, false],
    );
  });

  declare('saves an instance in place of a given one, or of none, only if that is stored', async (store) => {
    const one = { ...fullHttp, metadata: { zone: 'a' } };
    const saved: unknown[] = [];
    for (const [definition, before] of [
      [one, fullHttp],
      [fullHttp, null],
      [one, null],
      [smallest, null],
      [{ ...one, weight: 2 }, one],
      [one, fullHttp],
    ] as const)
      saved.push(await store.instances.save(definition, before));
    assert.equal(saved, [undefined, 1, undefined, 2, undefined, 3]);
    assert.equal(await store.instances.list(), [one, smallest]);
  });

  declare('saves several instances in their order, or none of them', async (store) => {
    const [first, second] = ['z', 'a'].map((id) => ({ ...smallest, id, serverId: id }));
    assert.ok(first !== undefined && second !== undefined);
    await store.instances.save(smallest);
    await store.instances.save(first);
    await store.instances.delete(first.template, first.id, 'f1');
    const outcomes = [
      await endOf(
        store.instances.saveMany([
          { definition: first, before: null },
          { definition: second, before: first },
        ]),
      ),
      await endOf(
        store.instances.saveMany([
          { definition: first },
          { definition: { ...second, serverId: smallest.serverId } },
        ]),
      ),
      await endOf(
        store.instances.saveMany([{ definition: first }, { definition: { ...second, locked: 'no key' } }]),
      ),
      await endOf(
        store.instances.saveMany([
          { definition: first },
          { definition: { ...second, serverId: first.serverId } },
        ]),
      ),
    ];
    assert.equal(outcomes, ['done', 'DUPLICATE_SERVER', 'CONFIG_INCOMPLETE', 'DUPLICATE_SERVER']);
    assert.equal(await store.instances.list(), [smallest]);
    const changed = { ...smallest, weight: 5 };
    const revision = await store.revision();
    const saves = [
      { definition: first, before: null },
      { definition: changed, before: smallest },
      { definition: second },
    ];
    assert.is(await store.instances.saveMany(saves), revision + 3);
    assert.is(await store.revision(), revision + 3);
    assert.equal(await store.instances.list(), [changed, first, second]);
    assert.is((await store.instances.findTombstones(first.template, [first.id])).size, 0);
    const { template, id, source } = first;
    for (const [named, ids, from] of [
      ['other', [id], source],
      [template, [id, 'never'], source],
      [template, [id], 'file'],
    ] as const)
      assert.is(await store.instances.deleteMany(named, ids, from), undefined);
    assert.is(await store.instances.deleteMany(template, [id, second.id], source), revision + 4);
    assert.equal(await store.instances.list(), [changed]);
  });

  declare('gives back any text: hostile ones, an empty and a long one', async (store) => {
    const texts = [...HOSTILE_TEXTS, '', 'x'.repeat(20_000)];
    const definition = {
      ...smallest,
      args: texts,
      env: Object.fromEntries(texts.map((text, index) => [`TEXT_${index}`, text])),
      metadata: {
        texts,
        [texts[0] ?? '']: { nested: [{ deep: texts[3] }] },
        nothing: null,
        no: false,
        half: 0.5,
      },
    };
    await store.instances.save(definition);
    assert.equal(await store.instances.list(), [definition]);
  });

  declare('replaces an instance by template and id, dropping fields that are left out', async (store) => {
    await store.instances.save({ ...fullHttp, id: smallest.id });
    await store.instances.save(smallest);
    assert.equal(await store.instances.list(), [smallest]);
  });

  declare('the same id in two templates is two instances', async (store) => {
    const twin = { ...smallest, template: 'other', serverId: 'other.small' };
    await store.instances.save(smallest);
    await store.instances.save(twin);
    assert.equal(sortedBy(await store.instances.list(), 'template'), [smallest, twin]);
    await store.instances.delete('other', smallest.id);
    assert.equal(await store.instances.list(), [smallest]);
  });

  declare('distinguishes ids by case', async (store) => {
    const upper = { ...smallest, id: 'SMALL', serverId: 'SMALL' };
    await store.instances.save(smallest);
    await store.instances.save(upper);
    assert.is((await store.instances.list()).length, 2);
    await store.instances.delete(upper.template, upper.id);
    assert.equal(await store.instances.list(), [smallest]);
  });

  declare('leaves a tombstone of a deleted entry until it is saved again', async (store) => {
    const twin = { ...smallest, template: 'other', serverId: 'other.small' };
    const find = async (template: string) =>
      (await store.instances.findTombstones(template, [smallest.id])).get(smallest.id);
    for (const definition of [smallest, twin]) await store.instances.save(definition);
    await store.instances.delete('demo', smallest.id, 'first');
    await store.instances.delete('other', smallest.id);
    assert.equal([await find('demo'), await find('other')], ['first', undefined]);
    assert.is(await store.instances.delete('demo', smallest.id, 'second'), undefined);
    assert.is(await find('demo'), 'first');
    await store.instances.save(twin);
    assert.is(await find('demo'), 'first');
    await store.instances.save(smallest);
    assert.is(await find('demo'), undefined);
    await store.instances.delete('demo', smallest.id, 'third');
    assert.is(await find('demo'), 'third');
  });

  declare('tells the time of its server, if it has one', async (store) => {
    const timeMs = await store.serverTimeMs();
    const isServer = store.kind !== 'memory' && store.kind !== 'sqlite';
    assert.is(timeMs !== undefined, isServer);
    if (timeMs !== undefined) assert.ok(Math.abs(timeMs - Date.now()) < 60_000, `${timeMs}`);
  });

  declare('changing an object passed in or returned does not change the store', async (store) => {
    const metadata: Record<string, unknown> = { zone: 'a' };
    await store.instances.save({ ...smallest, metadata });
    metadata.zone = 'changed by the giver';
    const [given] = await store.instances.list();
    Object.assign(given?.metadata ?? {}, { zone: 'changed by the taker' });
    assert.equal((await store.instances.list())[0]?.metadata, { zone: 'a' });

    const loadBalancer: { timeout: number } = { timeout: 1 };
    await store.templates.save({ name: 'demo', loadBalancer });
    loadBalancer.timeout = 2;
    assert.equal(await store.templates.list(), [{ name: 'demo', loadBalancer: { timeout: 1 } }]);
  });
}

/** The function that declares a test with a store, which is closed at its end. `prefix` of names: default none. */
export function declaring(test: Suite, open: () => Promise<Store>, prefix = '') {
  return (name: string, body: (store: Store) => Promise<void>) =>
    test(`${prefix}${name}`, async () => {
      const store = await open();
      try {
        await body(store);
      } finally {
        await store.close();
      }
    });
}

/** Texts that one or another database could misinterpret. NUL and lone surrogates are refused before. */
export const HOSTILE_TEXTS: readonly string[] = [
  `it's "quoted" \`so\``,
  `'; drop table users; --`,
  `\\'; drop table users; -- \\`,
  'C:\\temp\\new \\\\server\\share \\',
  'a backslash\\\nat the end of a line\\\r\nand of 漢字',
  'line\nbreak\r\n\ttab',
  '$1 $2b$12$ :0 :x @y ? ?? {{z}} %_ [a] #t',
  'Ünïcödé 漢字 😀 👩‍👩‍👧 \u202e',
  '\u{1d11e}'.repeat(128),
  ' spaces ',
  '/* comment */ -- comment',
  'null',
  `N'x'`,
];

const smallest: InstanceDefinition = {
  id: 'small',
  serverId: 'small',
  template: 'demo',
  transport: 'stdio',
  command: 'run',
  args: [],
  env: {},
  headers: {},
  weight: 1,
  metadata: {},
  source: 'api',
  createdAt: '2026-01-02T03:04:05.678Z',
  updatedAt: '2026-01-02T03:04:05.678Z',
};

const fullHttp: InstanceDefinition = {
  ...smallest,
  id: 'http.full-1',
  serverId: 'demo.http.full-1',
  transport: 'http',
  endpoint: 'https://example.com:8443/mcp?zone=a%20b',
  args: ['--port', '8443'],
  workingDir: '/srv/demo',
  env: { LOG_LEVEL: 'debug' },
  headers: { Authorization: 'Bearer abc', 'X-Zone': 'a' },
  weight: 1_000,
  metadata: { owner: 'team', weight: 3, nested: { list: [1, 2.5, null, true] } },
  source: 'file',
  fingerprint: '0'.repeat(64),
  updatedAt: '2026-02-03T04:05:06.789Z',
};

const fullStdio: InstanceDefinition = {
  ...smallest,
  id: 'stdio_full',
  serverId: 'stdio_full',
  command: 'npx',
  args: ['-y', '@scope/server@1.2.3', 'a b'],
  env: { A: '1', B: '' },
  secretEnv: ['A'],
  source: 'sync',
  nodeId: 'node-7f.example',
};

function sortedBy<K extends string, T extends Readonly<Record<K, string>>>(
  values: readonly T[],
  field: K,
): T[] {
  return values.toSorted((one, other) => (one[field] < other[field] ? -1 : 1));
}

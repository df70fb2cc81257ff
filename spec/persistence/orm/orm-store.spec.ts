// The store on SQLite. The servers: spec/system/databases.

import * as assert from 'uvu/assert';
import { NO_NAMES } from '../../../src/domain/views/view.ts';
import { createCipher } from '../../../src/persistence/cipher.ts';
import { migrationStatus, openStore } from '../../../src/persistence/open-store.ts';
import { smallKey } from '../../conformance/accounts.ts';
import { definition } from '../../helpers/backends/profiles.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { errorOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { turnsOf } from '../../helpers/time/turns.ts';
import { cipher, everyConformance } from '../every-conformance.ts';
import { openInProcesses } from './open-in-processes.ts';
import { rekeyBehaviour } from './rekey-behaviour.ts';

const inFile = suite('store on a SQLite file', { timeoutMs: 120_000 });
const folder = folderOfAll(inFile);
let files = 0;
everyConformance(inFile, () => {
  files += 1;
  return openStore(`sqlite:///${files}.db`, { cwd: folder(), cipher, migrations: 'apply' });
});

rekeyBehaviour((name, body) =>
  inFile(name, () => {
    files += 1;
    return body(`sqlite:///${folder()}/${files}.db`);
  }),
);

const AT = '2026-06-01T00:00:00.123Z';
const secret = definition('i', {
  ...{ template: 'demo', transport: 'stdio', command: 'run' },
  ...{ env: { TOKEN: 'planted-secret' }, headers: { Authorization: 'planted-secret' } },
});

inFile('has one clean schema after eight processes started concurrently', async () => {
  const url = `sqlite:////${folder()}/gateway.db`;
  assert.equal(await openInProcesses(url, 8), Array(8).fill('open'));
  const { applied, pending, unknown } = await migrationStatus(url, { cwd: folder() });
  assert.equal([new Set(applied).size, pending, unknown], [applied.length, [], []]);
  const store = await openStore(url, { cwd: folder(), migrations: 'require' });
  assert.equal([(await store.templates.list()).length, await store.revision()], [8, 8]);
  await store.close();
});

inFile('reads thousands of accounts in several turns of the event loop', async () => {
  const store = await openStore('sqlite:///accounts.db', { cwd: folder(), cipher, migrations: 'apply' });
  const keys = Array.from({ length: 1_100 }, (_, index) => ({
    ...smallKey,
    id: index.toString(16).padStart(16, '0'),
  }));
  for (const key of keys.toReversed()) await store.accounts.insertApiKey(key);
  let turns = 0;
  let isRead = false;
  const count = (): void => {
    turns += 1;
    if (!isRead) setImmediate(count);
  };
  setImmediate(count);
  assert.equal(await store.accounts.findApiKeys(), keys.toReversed());
  isRead = true;
  assert.ok(turns >= 2, `${turns} turns`);
  await store.close();
});

inFile('reads hundreds of views in several turns of the event loop', async () => {
  const store = await openStore('sqlite:///views.db', { cwd: folder(), migrations: 'apply' });
  for (let n = 0; n < 250; n += 1) {
    const view = {
      definition: { id: `v${n}`, from: [] },
      names: NO_NAMES,
      source: 'api',
      updatedAt: AT,
    } as const;
    await store.views.save(view, null);
  }
  const turns = await turnsOf(() => store.views.list());
  assert.ok(turns >= 10, `${turns} turns`);
  await store.close();
});

inFile('locks only the instance whose secrets cannot be decrypted', async () => {
  const url = 'sqlite:///x.db';
  const open = secret;
  const encryptedOtherwise = { ...secret, id: 'other', serverId: 'other', headers: {} };
  const plain = { ...secret, id: 'plain', serverId: 'plain', env: {}, headers: {} };
  const first = await openStore(url, { cwd: folder(), cipher, migrations: 'apply' });
  for (const each of [open, plain]) await first.instances.save(each);
  await first.close();
  const otherCipher = createCipher([new Uint8Array(32).fill(8)]);
  const second = await openStore(url, { cwd: folder(), cipher: otherCipher, migrations: 'require' });
  await second.instances.save(encryptedOtherwise);
  const { locked, ...rest } = (await second.instances.list())[0] ?? {};
  assert.equal(rest, { ...open, env: {}, headers: {} });
  assert.match(
    String(locked),
    /^"env" of the instance demo\/i cannot be read: encrypted with the key \w{8}, .*GATEWAY_ENCRYPTION_KEY/,
  );
  assert.equal((await second.instances.list()).slice(1), [plain, encryptedOtherwise]);
  await second.close();

  const keyless = await openStore(url, { cwd: folder(), migrations: 'require' });
  const listed = await keyless.instances.list();
  assert.equal(
    listed.map(({ id, locked: why }) => [id, why?.includes('there is no encryption key') ?? false]),
    [
      ['i', true],
      ['plain', false],
      ['other', true],
    ],
  );
  // An instance that was read without its secrets must not overwrite them.
  const [unreadable] = listed;
  assert.ok(unreadable);
  const refused = await errorOf(keyless.instances.save({ ...unreadable, weight: 2 }));
  assert.is(refused.code, 'CONFIG_INCOMPLETE');
  assert.match(refused.message, 'cannot be read');
  await keyless.instances.delete('demo', 'other');
  await keyless.instances.save({ ...plain, id: 'i', serverId: 'i' });
  assert.equal(await keyless.instances.list(), [{ ...plain, id: 'i', serverId: 'i' }, plain]);
  await keyless.close();
});

inFile('refuses an instance with secrets without a cipher, and names the setting', async () => {
  const store = await openStore('sqlite://', { cwd: '/', migrations: 'apply' });
  for (const part of [{ headers: {} }, { env: {} }]) {
    const failure = await errorOf(store.instances.save({ ...secret, ...part }));
    assert.is(failure.code, 'CONFIG_INCOMPLETE');
    assert.match(String(failure), 'GATEWAY_ENCRYPTION_KEY');
    assert.not.match(String(failure), 'planted-secret');
  }
  await store.instances.save({ ...secret, env: {}, headers: {} });
  assert.equal([(await store.instances.list()).length, store.kind], [1, 'sqlite']);
  await store.close();
});

inFile.run();

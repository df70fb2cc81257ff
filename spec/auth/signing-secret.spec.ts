// The signing secret: where it comes from, the file that it is kept in, and the keys of encryption that come from it.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, chown, link, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import {
  encryptionKeys,
  ensureSecretFile,
  localSecret,
  readSecretFile,
  type SigningSecret,
  secretWarning,
  sharedSecret,
} from '../../src/auth/signing-secret.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { MemoryStore } from '../../src/persistence/memory-store.ts';
import { folderOfEach } from '../helpers/folder.ts';
import { messageOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const refusal = (work: Promise<unknown>) => messageOf(work, ConfigError);

const test = suite('the signing secret');

const long = 'a secret of more than thirty-two bytes';

const folder = folderOfEach(test);

test('is the configured one, and then no file is made', async () => {
  const keyFile = folder('gateway.key');
  assert.equal(await localSecret({ configured: long, keyFile }), {
    secret: Buffer.from(long),
    source: 'configured',
  });
  assert.equal(await readdir(folder()), []);
  assert.is(await localSecret({}), undefined);
});

test('is refused when it is too short, or cannot be kept', async () => {
  const keyFile = folder('gateway.key');
  const refused = (sources: Parameters<typeof localSecret>[0]) => refusal(localSecret(sources));
  const tooShort = 'the signing secret needs at least 32 bytes';
  assert.is(await refused({ configured: 'x'.repeat(31) }), `GATEWAY_SECRET_KEY: ${tooShort}`);
  await writeFile(keyFile, '\n', { mode: 0o600 });
  assert.match(await refused({ keyFile }), `gateway.key: ${tooShort}`);
  const nowhere = await refused({ keyFile: folder('no', 'folder', 'gateway.key') });
  assert.match(nowhere, /cannot be stored there \(ENOENT\); set GATEWAY_SECRET_KEY instead/);
  assert.match(nowhere, /; a database there also needs a folder that this user may write to$/);
});

test('is shared through a server database, with a warning, and made anew by each process without one', async () => {
  const { settings } = new MemoryStore();
  const server = { kind: 'postgresql', settings };
  const [one, other] = await Promise.all([sharedSecret(server), sharedSecret(server)]);
  assert.is(one.source, 'database');
  assert.equal(one, other);
  assert.match(secretWarning(one) ?? '', /set GATEWAY_SECRET_KEY/);

  const memory = new MemoryStore();
  const [mine, yours] = [await sharedSecret(memory), await sharedSecret(memory)];
  assert.is(mine.source, 'process');
  assert.not.equal(mine.secret, yours.secret);
  assert.is(secretWarning(mine), undefined);
});

const fileAt = (...names: string[]) => ({
  path: folder(...names),
  what: 'the secret',
  hint: 'keep it elsewhere',
});

test('of a file: the first line that is written stays, for its owner alone, and nothing lies beside it', async () => {
  const file = fileAt('secret');
  assert.is(await readSecretFile(file), undefined);
  assert.is(await ensureSecretFile(file, 'one'), 'one');
  assert.is(await ensureSecretFile(file, 'other'), 'one');
  assert.is(await readSecretFile(file), 'one');
  assert.is(await readFile(file.path, 'utf8'), 'one\n');
  if (process.platform !== 'win32') assert.is((await stat(file.path)).mode & 0o777, 0o600);
  assert.equal(await readdir(folder()), ['secret']);
});

test('of twenty that write at once, all get the line that is there', async () => {
  const file = fileAt('secret');
  const lines = await Promise.all(Array.from({ length: 20 }, (_, n) => ensureSecretFile(file, `line ${n}`)));
  assert.equal(new Set(lines), new Set([(await readFile(file.path, 'utf8')).trim()]));
  assert.equal(await readdir(folder()), ['secret']);
});

test('of a file: what others can read, what is too long and what is no file is refused, in words without it', async () => {
  const file = fileAt('secret');
  await writeFile(file.path, 'the line');
  for (const mode of [0o640, 0o604, 0o620, 0o602]) {
    await chmod(file.path, mode);
    const message = await refusal(ensureSecretFile(file, 'x'));
    assert.match(message, /secret can be read by other users; "chmod 600" it/);
    assert.not.match(message, 'the line');
  }
  await chmod(file.path, 0o600);
  assert.is(await ensureSecretFile(file, 'x'), 'the line');
  await writeFile(file.path, 'x'.repeat(4_097));
  assert.match(await refusal(readSecretFile(file)), /not a file with a secret: it has 4097 bytes/);
  assert.match(await refusal(readSecretFile({ ...file, path: folder() })), /not a file with a secret/);
});

test.needs(process.platform !== 'win32', 'Windows has no pipes in folders')(
  'a pipe is refused at once, instead of waiting for somebody who writes',
  async () => {
    const file = fileAt('pipe');
    execFileSync('mkfifo', ['-m', '600', file.path]);
    assert.match(await refusal(readSecretFile(file)), /not a file with a secret/);
  },
);

test.needs(process.getuid?.() === 0, 'only root can give a file away')(
  'one that another user owns is refused: that user knows what is in it',
  async () => {
    const file = fileAt('foreign');
    await writeFile(file.path, 'the line', { mode: 0o600 });
    await chown(file.path, 65_534, 65_534);
    assert.match(await refusal(readSecretFile(file)), /secret belongs to another user/);
  },
);

test('writes nothing through a link that leads nowhere', async () => {
  const file = fileAt('secret');
  await symlink(folder('elsewhere'), file.path);
  assert.match(await refusal(ensureSecretFile(file, 'x')), /cannot be stored there \(EEXIST\)/);
  assert.equal(await readdir(folder()), ['secret']);
  await rm(file.path);
  await writeFile(folder('real'), 'kept', { mode: 0o600 });
  await link(folder('real'), file.path);
  assert.is(await ensureSecretFile(file, 'x'), 'kept');
});

const secret = randomBytes(32);
const hex = (keys: readonly Uint8Array[]): string[] => keys.map((key) => Buffer.from(key).toString('hex'));

test('keys of encryption come from the signing secret where that is outside the database, and from nowhere else', () => {
  const sources: [SigningSecret['source'], number][] = [
    ['configured', 1],
    ['file', 1],
    ['database', 0],
    ['process', 0],
  ];
  for (const [source, count] of sources) {
    const keys = encryptionKeys({ configured: [], signing: { secret, source } });
    assert.is(keys.length, count, source);
    for (const key of keys) {
      assert.is(key.byteLength, 32);
      assert.not.equal(hex([key]), hex([secret]));
    }
  }
  assert.equal(encryptionKeys({ configured: [] }), []);
});

test('keys of encryption keep the order in which they were configured, before the signing secret', () => {
  const [one, other] = ['a'.repeat(32), 'b'.repeat(40)];
  const keys = encryptionKeys({ configured: [one, other], signing: { secret, source: 'file' } });
  assert.is(new Set(hex(keys)).size, 3);
  assert.equal(hex(keys.slice(0, 1)), hex(encryptionKeys({ configured: [one] })));
  assert.equal(hex(keys.slice(1, 2)), hex(encryptionKeys({ configured: [other] })));
  assert.equal(
    hex(keys.slice(2)),
    hex(encryptionKeys({ configured: [], signing: { secret, source: 'file' } })),
  );
});

test.run();

import { execFileSync } from 'node:child_process';
import {
  chmod,
  chown,
  link,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { ensureSecretFile, readSecretFile } from '../../src/auth/signing-secret.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('files with a secret');
let folder = '';
test.before.each(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stagedoor-secret-file-'));
});
test.after.each(() => rm(folder, { recursive: true, force: true }));

const fileAt = (...names: string[]) => ({
  path: join(folder, ...names),
  what: 'the secret',
  hint: 'keep it elsewhere',
});

test('the first line that is written stays, for its owner alone, and nothing lies beside it', async () => {
  const file = fileAt('secret');
  assert.is(await readSecretFile(file), undefined);
  assert.is(await ensureSecretFile(file, 'one'), 'one');
  assert.is(await ensureSecretFile(file, 'other'), 'one');
  assert.is(await readSecretFile(file), 'one');
  assert.is(await readFile(file.path, 'utf8'), 'one\n');
  if (process.platform !== 'win32') assert.is((await stat(file.path)).mode & 0o777, 0o600);
  assert.equal(await readdir(folder), ['secret']);
});

test('of twenty that write at once, all get the line that is there', async () => {
  const file = fileAt('secret');
  const lines = await Promise.all(Array.from({ length: 20 }, (_, n) => ensureSecretFile(file, `line ${n}`)));
  assert.equal(new Set(lines), new Set([(await readFile(file.path, 'utf8')).trim()]));
  assert.equal(await readdir(folder), ['secret']);
});

test('what others can read, what is too long and what is no file is refused, in words without it', async () => {
  const file = fileAt('secret');
  await writeFile(file.path, 'the line');
  for (const mode of [0o640, 0o604, 0o620, 0o602]) {
    await chmod(file.path, mode);
    assert.match(
      await refusal(ensureSecretFile(file, 'x')),
      /secret can be read by other users; "chmod 600" it/,
    );
  }
  await chmod(file.path, 0o600);
  assert.is(await ensureSecretFile(file, 'x'), 'the line');
  await writeFile(file.path, 'x'.repeat(4_097));
  assert.match(await refusal(readSecretFile(file)), /this is no file with a secret: it has 4097 bytes/);
  assert.match(await refusal(readSecretFile({ ...file, path: folder })), /this is no file with a secret/);
});

test.needs(process.platform !== 'win32', 'Windows has no pipes in folders')(
  'a pipe is refused at once, instead of waiting for somebody who writes',
  async () => {
    const file = fileAt('pipe');
    execFileSync('mkfifo', ['-m', '600', file.path]);
    assert.match(await refusal(readSecretFile(file)), /this is no file with a secret/);
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

test('where none can be made it says why, and what to do', async () => {
  const file = fileAt('no', 'folder', 'secret');
  assert.is(
    await refusal(ensureSecretFile(file, 'x')),
    `${file.path}: the secret cannot be kept there (ENOENT); keep it elsewhere`,
  );
});

test('writes nothing through a link that leads nowhere', async () => {
  const file = fileAt('secret');
  await symlink(join(folder, 'elsewhere'), file.path);
  assert.match(await refusal(ensureSecretFile(file, 'x')), /cannot be kept there \(EEXIST\)/);
  assert.equal(await readdir(folder), ['secret']);
  await rm(file.path);
  await writeFile(join(folder, 'real'), 'kept', { mode: 0o600 });
  await link(join(folder, 'real'), file.path);
  assert.is(await ensureSecretFile(file, 'x'), 'kept');
});

async function refusal(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.catch((thrown) => thrown);
  assert.ok(error instanceof ConfigError);
  return error.message;
}

test.run();

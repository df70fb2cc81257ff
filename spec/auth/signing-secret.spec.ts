import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { localSecret, secretWarning, sharedSecret } from '../../src/auth/signing-secret.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { MemoryStore } from '../../src/persistence/memory-store.ts';
import { suite } from '../helpers/suite.ts';

const long = 'a secret of more than thirty-two bytes';
const program = fileURLToPath(new URL('starting-process.ts', import.meta.url));

const test = suite('the signing secret', { timeoutMs: 30_000 });
let folder = '';
test.before.each(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stagedoor-secret-'));
});
test.after.each(() => rm(folder, { recursive: true, force: true }));

test('is the configured one, and then no file is made', async () => {
  const keyFile = join(folder, 'gateway.key');
  assert.equal(await localSecret({ configured: long, keyFile }), {
    secret: Buffer.from(long),
    source: 'configured',
  });
  assert.equal(await readdir(folder), []);
  assert.is(await localSecret({}), undefined);
});

test('is made once in a file that only its owner may read', async () => {
  const keyFile = join(folder, 'gateway.key');
  const first = await localSecret({ keyFile });
  assert.is(first?.source, 'file');
  assert.is(first?.secret.byteLength, 43);
  assert.is((await stat(keyFile)).mode & 0o777, 0o600);
  assert.equal(await localSecret({ keyFile }), first);
  assert.equal(await readdir(folder), ['gateway.key']);
});

test('is one and the same for eight processes that start at once', async () => {
  const keyFile = join(folder, 'gateway.key');
  const processes = Array.from({ length: 8 }, () => fork(program, [keyFile]));
  await Promise.all(processes.map((child) => once(child, 'message')));
  const answers = processes.map(async (child) => {
    const answer = once(child, 'message');
    child.send('go');
    const [secret] = await answer;
    return secret;
  });
  const secrets = await Promise.all(answers);
  assert.equal(new Set(secrets), new Set([(await readFile(keyFile, 'utf8')).trim()]));
  assert.equal(await readdir(folder), ['gateway.key']);
});

test('is refused when it is too short, or when others can read it, in words without it', async () => {
  const keyFile = join(folder, 'gateway.key');
  const refused = async (sources: Parameters<typeof localSecret>[0]): Promise<string> => {
    const error: unknown = await localSecret(sources).catch((thrown) => thrown);
    assert.ok(error instanceof ConfigError);
    return error.message;
  };
  assert.is(
    await refused({ configured: 'x'.repeat(31) }),
    'GATEWAY_SECRET_KEY: the signing secret needs at least 32 bytes',
  );
  await writeFile(keyFile, '\n', { mode: 0o600 });
  assert.match(await refused({ keyFile }), /gateway\.key: the signing secret needs at least 32 bytes/);
  await writeFile(keyFile, long, { mode: 0o600 });
  for (const mode of [0o640, 0o604, 0o660, 0o602]) {
    await chmod(keyFile, mode);
    const message = await refused({ keyFile });
    assert.match(message, /gateway\.key: the signing secret can be read by other users; "chmod 600"/);
    assert.not.ok(message.includes(long));
  }
  await chmod(keyFile, 0o600);
  assert.equal((await localSecret({ keyFile }))?.secret, Buffer.from(long));
  await writeFile(keyFile, 'x'.repeat(5_000));
  assert.match(await refused({ keyFile }), /this is no file with a secret: it has 5000 bytes/);
  assert.match(await refused({ keyFile: folder }), /this is no file with a secret/);
  const nowhere = await refused({ keyFile: join(folder, 'no', 'folder', 'gateway.key') });
  assert.match(nowhere, /cannot be kept there \(ENOENT\); set GATEWAY_SECRET_KEY instead/);
  assert.match(nowhere, /; a database there needs a folder that this user may write, too$/);
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

test.run();

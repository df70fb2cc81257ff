// Who may be a node of a database file: one living process at a time.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { ConfigError } from '../src/config/config-error.ts';
import { claimNode } from '../src/node-claim.ts';
import { suite } from './helpers/suite.ts';

const test = suite('node claim');
let folder = '';
let file = '';
test.before.each(() => {
  folder = mkdtempSync(join(tmpdir(), 'stagedoor-claim-'));
  file = join(folder, 'gateway.db');
});
test.after.each(() => rmSync(folder, { recursive: true, force: true }));

test('holds a node until it is let go, and leaves nothing behind', async () => {
  const claim = await claimNode(file, 'local');
  assert.is(readFileSync(`${file}.local.pid`, 'utf8'), `${process.pid}\n`);
  await claim.release();
  await claim.release();
  assert.equal(readdirSync(folder), []);
});

test('refuses a node that a living process has, and says what to do', async () => {
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  await once(other, 'spawn');
  try {
    writeFileSync(`${file}.local.pid`, `${other.pid}\n`);
    const refusal = await claimNode(file, 'local').catch((thrown: unknown) => thrown);
    assert.instance(refusal, ConfigError);
    assert.match(String(refusal), `process ${other.pid} runs as the node "local"`);
    assert.match(String(refusal), '--node-id');
    const beside = await claimNode(file, 'second');
    await beside.release();
    assert.is(readFileSync(`${file}.local.pid`, 'utf8'), `${other.pid}\n`);
  } finally {
    other.kill();
    await once(other, 'exit');
  }
  const claim = await claimNode(file, 'local');
  await claim.release();
});

test('takes over what a crash or a half-written file left behind', async () => {
  for (const left of ['', 'no number', '4194304999\n', `${process.pid}\n`]) {
    writeFileSync(`${file}.local.pid`, left);
    const claim = await claimNode(file, 'local');
    assert.is(readFileSync(`${file}.local.pid`, 'utf8'), `${process.pid}\n`);
    await claim.release();
  }
});

test('writes a name that is no file name as one', async () => {
  const claim = await claimNode(file, 'web-1:8080');
  assert.equal(readdirSync(folder), ['gateway.db.web-1%3A8080.pid']);
  await claim.release();
});

test('says in one line when the folder cannot be written to', async () => {
  const refusal = await claimNode(join(folder, 'missing', 'gateway.db'), 'local').catch(
    (thrown: unknown) => thrown,
  );
  assert.instance(refusal, ConfigError);
  assert.match(String(refusal), 'ENOENT');
});

test.run();

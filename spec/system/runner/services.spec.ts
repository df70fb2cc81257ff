// Real servers are found or started once per run, and a private one never outlives the run. Where the programs of a
// server are not installed, the tests about private servers are skipped with what to install.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { freePort } from '../../../src/cli/demo-servers.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { eventually } from '../../helpers/gateway-client.ts';
import { isRunning } from '../../helpers/is-running.ts';
import { answers } from '../../helpers/services/find.ts';
import { startPrivate } from '../../helpers/services/private-server.ts';
import { executeSql } from '../../helpers/services/sql.ts';
import {
  findService,
  freshDatabase,
  mariadb,
  postgresql,
  redis,
  type ServiceName,
} from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { closeRunFolder, openRunFolder, variablesOf } from '../../runner/run-folder.ts';

const test = suite('services', { timeoutMs: 90_000 });
const names: readonly ServiceName[] = ['postgresql', 'mariadb', 'redis'];
const found = { postgresql: await postgresql(), mariadb: await mariadb(), redis: await redis() };
const scratch = folderOfAll(test)();
test.before(async () => {
  await chmod(scratch, 0o711);
});

for (const name of names) {
  const { url, skip } = found[name];
  test.needs(url, skip)(`finds a ${name} server that can be used`, async () => {
    await answers(name, url ?? '');
  });

  test.needs(url, skip)(`finds the same ${name} server again`, async () => {
    assert.equal(await findService(name), found[name]);
  });
}

for (const name of ['postgresql', 'mariadb'] as const) {
  const { url = '', skip } = found[name];
  test.needs(url, skip)(`gives databases of their own on ${name} and drops them`, async () => {
    const [one, other] = await Promise.all([freshDatabase({ url }), freshDatabase({ url })]);
    await executeSql(one.url, 'create table only_here (id integer)');
    await executeSql(other.url, 'create table only_here (id integer)');
    await executeSql(one.url, 'select id from only_here');
    await Promise.all([one.drop(), other.drop()]);
    assert.match(await messageOf(executeSql(one.url, 'select 1')), /database.*stagedoor_spec_/i);
    await one.drop();
  });
}

for (const name of names) {
  test(`says what to install when there is no ${name}, before anything is started`, async () => {
    const folder = await mkdtemp(join(scratch, 'empty-'));
    const sentence = await startPrivate(name, folder, () => Promise.reject(new Error('started')), [folder]);
    assert.match(
      String(sentence),
      new RegExp(`^there is no ${name} server: install .*apt-get install.* or set TEST_`),
    );
  });

  const missing = await startPrivate(name, scratch, () => Promise.reject(new Error('its programs are here')))
    .then(String)
    .catch(() => '');
  test.needs(!missing, missing)(`starts a private ${name} server and stops it`, async () => {
    const folder = await mkdtemp(join(scratch, 'private-'));
    await chmod(folder, 0o711);
    const server = await startPrivate(name, folder, async () => undefined);
    if (typeof server === 'string') throw new Error(server);
    await answers(name, server.url);
    await server.stop();
    assert.is(server.isRunning(), false);
    assert.equal(readdirSync(folder), []);
    assert.is.not(await messageOf(answers(name, server.url)), 'it did not reject');
  });

  for (const end of ['closes its run', 'is killed'] as const) {
    test.needs(!missing, missing)(`no private ${name} server outlives an owner that ${end}`, async () => {
      const owner = await startOwner(name);
      const { url, run, supervisor } = await owner.says();
      assert.is(isRunning(supervisor), true);
      await answers(name, url);
      if (end === 'is killed') owner.kill();
      else await owner.close();
      const isGone = async () => !isRunning(supervisor) && !existsSync(run);
      assert.ok(await eventually(isGone, Boolean, 60_000), 'not within 60 s');
      assert.is.not(await messageOf(answers(name, url)), 'it did not reject');
    });
  }
}

test('two that ask at once are told of one server', async () => {
  const run = openRunFolder();
  const environment = { ...process.env, ...variablesOf(run) };
  const told = await Promise.all(Array.from({ length: 5 }, () => findService('redis', environment)));
  assert.equal(
    told,
    Array.from({ length: 5 }, () => told[0]),
  );
  await closeRunFolder(run);
  assert.is(existsSync(run.path), false);
});

test('a skip says why, and is a failure where services are required', async () => {
  const run = openRunFolder();
  await mkdir(join(run.path, 'redis'));
  await writeFile(join(run.path, 'redis', 'answer.json'), '{ "skip": "there is none: install it" }');
  const environment = variablesOf(run);
  assert.equal(await findService('redis', environment), {
    url: undefined,
    skip: 'there is none: install it',
  });
  assert.is(
    await messageOf(findService('redis', { ...environment, STAGEDOOR_REQUIRE_SERVICES: '1' })),
    'required here, but there is none: install it',
  );
  await closeRunFolder(run);
});

test('rejects when a server was named and nothing answers there', async () => {
  const run = openRunFolder();
  const port = await freePort();
  const environment = { ...process.env, ...variablesOf(run), TEST_REDIS_URL: `redis://127.0.0.1:${port}` };
  assert.match(await messageOf(findService('redis', environment)), /^redis: /);
  await closeRunFolder(run);
});

test.run();

interface Owner {
  says(): Promise<{ readonly url: string; readonly run: string; readonly supervisor: number }>;
  close(): Promise<void>;
  kill(): void;
}

/** A process that owns a run and asks for a private server; it closes the run at the end of its input. */
async function startOwner(name: ServiceName): Promise<Owner> {
  const from = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);
  const script = `
    import { once } from 'node:events';
    import { closeRunFolder, openRunFolder, variablesOf } from ${from('../../runner/run-folder.ts')};
    import { findService } from ${from('../../helpers/services.ts')};
    const run = openRunFolder();
    const { url } = await findService(${JSON.stringify(name)}, { ...process.env, ...variablesOf(run) });
    process.stdout.write(JSON.stringify({ url, run: run.path }));
    process.stdout.end();
    await once(process.stdin.resume(), 'end');
    await closeRunFolder(run);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    env: { ...process.env, STAGEDOOR_PRIVATE_SERVICES: '1', [`TEST_${name.toUpperCase()}_URL`]: '' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  return {
    says: async () => {
      const { url, run } = JSON.parse(await text(child.stdout));
      return { url, run, supervisor: Number(readFileSync(join(run, name, 'keeping'), 'utf8')) };
    },
    close: async () => {
      child.stdin.end();
      assert.equal(await ended, [0, null]);
    },
    kill: () => child.kill('SIGKILL'),
  };
}

async function messageOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
  return 'it did not reject';
}

// Real servers are found or started once per run, and a private one never outlives the run. Where the programs of a
// server are not installed, the tests about private servers are skipped with what to install.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { freePort } from '../../../src/cli/demo-servers.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { eventually } from '../../helpers/gateway-client.ts';
import { isRunning } from '../../helpers/is-running.ts';
import { answers } from '../../helpers/services/find.ts';
import { startPrivate } from '../../helpers/services/private-server.ts';
import { findService, type ServiceName } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';
import { closeRunFolder, openRunFolder, variablesOf } from '../../runner/run-folder.ts';

const test = suite('services', { timeoutMs: 90_000 });
/** The one that starts fastest: what is started makes no difference to how it ends. */
const name = 'redis';
const scratch = folderOfAll(test)();

test('says what to install when there is no server, before anything is started', async () => {
  const started = () => Promise.reject(new Error('started'));
  for (const each of ['postgresql', 'mariadb', 'redis'] as const)
    assert.match(
      String(await startPrivate(each, scratch, started, [scratch])),
      new RegExp(`^there is no ${each} server: install .*apt-get install.* or set TEST_`),
    );
});

const missing = await startPrivate(name, scratch, () => Promise.reject(new Error('its programs are here')))
  .then(String)
  .catch(() => '');
for (const end of ['closes its run', 'is killed'] as const) {
  test.needs(!missing, missing)(`no private server outlives an owner that ${end}`, async () => {
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

// Real servers are found or started once per run, and a private one never outlives the run. Where the programs of a server are
// not installed, the tests of private servers are skipped with the package to install.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { freePort } from '../../../src/cli/demo-servers.ts';
import { eventually } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { canFindProcesses, isRunning, NO_PROCESSES } from '../../helpers/processes.ts';
import { answers, startPrivate } from '../../helpers/services/private-server.ts';
import { type ServiceName, SupervisedServers } from '../../helpers/services/supervised.ts';
import { serviceOf } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('services of the specs', { timeoutMs: 90_000 });
/** The fastest to start: the kind of server makes no difference for its end. */
const name = 'redis';
const scratch = folderOfAll(test)();

chmodSync(scratch, 0o711);

const tooEarly = () => {
  throw new Error('its programs are here');
};
test('name the package to install when there is no server, before any is started', async () => {
  for (const each of ['postgresql', 'mariadb', 'redis'] as const)
    assert.match(
      String(await startPrivate(each, tooEarly, [scratch])),
      new RegExp(`^there is no ${each} server: install .*apt-get install.* or set TEST_`),
    );
});

const missing = await startPrivate(name, tooEarly).then(String, () => '');
for (const end of ['closes its run', 'is killed'] as const) {
  test.needs(canFindProcesses && !missing, missing || NO_PROCESSES)(
    `include no private server that outlives an owner that ${end}`,
    async () => {
      const owner = startOwner(name);
      const { url, supervisor } = await owner.says();
      assert.equal([isRunning(supervisor), readdirSync(scratch).length], [true, 1]);
      await answers(name, url);
      if (end === 'is killed') owner.kill();
      else await owner.close();
      const isGone = async () => !isRunning(supervisor) && readdirSync(scratch).length === 0;
      assert.ok(await eventually(isGone, Boolean, 60_000), 'not within 60 s');
      const said = await answers(name, url).then(() => 'it answers', String);
      assert.is.not(said, 'it answers');
    },
  );
}

test('are skipped with a reason if missing, and fail where services are required', () => {
  const answer = { skip: 'there is none: install it' };
  assert.equal(serviceOf(answer, {}), { url: undefined, ...answer });
  assert.throws(
    () => serviceOf(answer, { STAGEDOOR_REQUIRE_SERVICES: '1' }),
    'required here, but there is none: install it',
  );
});

test('fail when the named server does not answer', async () => {
  const servers = new SupervisedServers();
  const environment = { ...process.env, TEST_REDIS_URL: `redis://127.0.0.1:${await freePort()}` };
  const answer = await servers.find('redis', environment);
  assert.throws(() => serviceOf(answer), /^redis: /);
  await servers.close();
});

test.run();

interface Owner {
  says(): Promise<{ readonly url: string; readonly supervisor: number }>;
  close(): Promise<void>;
  kill(): void;
}

/** A process that owns a private server; it closes its servers at the end of its input. */
function startOwner(name: ServiceName): Owner {
  const script = `
    import { once } from 'node:events';
    import { readFileSync } from 'node:fs';
    import { SupervisedServers } from ${JSON.stringify(new URL('../../helpers/services/supervised.ts', import.meta.url).href)};
    const servers = new SupervisedServers();
    const { url } = await servers.find(${JSON.stringify(name)});
    const supervisor = Number(readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8'));
    process.stdout.write(JSON.stringify({ url, supervisor }));
    process.stdout.end();
    await once(process.stdin.resume(), 'end');
    await servers.close();`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    env: {
      ...process.env,
      [`TEST_${name.toUpperCase()}_URL`]: '',
      TMPDIR: scratch,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  return {
    says: async () => JSON.parse(await text(child.stdout)),
    close: async () => {
      child.stdin.end();
      assert.equal(await ended, [0, null]);
    },
    kill: () => child.kill('SIGKILL'),
  };
}

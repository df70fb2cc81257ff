// Real servers are found or started once per run, and a private one never outlives the run. Where the programs of a server are
// not installed, the tests of private servers are skipped with the package to install.

import { spawn } from 'node:child_process';
import { chmodSync, readdirSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { eventually } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { canFindProcesses, isRunning, NO_PROCESSES } from '../../helpers/programs/processes.ts';
import { answers, startPrivate } from '../../helpers/services/private-server.ts';
import { serviceOf } from '../../helpers/services/services.ts';
import { SupervisedServers } from '../../helpers/services/supervised.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('services of the specs', { timeoutMs: 90_000 });
/** The fastest to start: the kind of server makes no difference for its end. */
const name = 'redis';
const scratch = folderOfAll(test)();

chmodSync(scratch, 0o711);

const missing = await startPrivate(name, () => {
  throw new Error('its programs are here');
}).then(String, () => '');
test.needs(canFindProcesses && !missing, missing || NO_PROCESSES)(
  'include no private server that outlives an owner that is killed',
  async () => {
    const owner = startOwner();
    const { url, supervisor } = JSON.parse(await text(owner.stdout));
    assert.equal([isRunning(supervisor), readdirSync(scratch).length], [true, 1]);
    await answers(name, url);
    owner.kill('SIGKILL');
    const isGone = async () => !isRunning(supervisor) && readdirSync(scratch).length === 0;
    assert.ok(await eventually(isGone, Boolean, 60_000), 'not within 60 s');
    const said = await answers(name, url).then(() => 'it answers', String);
    assert.is.not(said, 'it answers');
  },
);

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

/** A process that owns a private server. */
function startOwner() {
  const script = `
    import { readFileSync } from 'node:fs';
    import { SupervisedServers } from ${JSON.stringify(new URL('../../helpers/services/supervised.ts', import.meta.url).href)};
    const { url } = await new SupervisedServers().find('${name}');
    const supervisor = Number(readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8'));
    process.stdout.write(JSON.stringify({ url, supervisor }));
    process.stdout.end();
    setInterval(() => {}, 60_000);`;
  return spawn(process.execPath, ['--input-type=module', '--eval', script], {
    env: { ...process.env, TEST_REDIS_URL: '', TMPDIR: scratch },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

// @own-process: a gateway that has stopped ends its process some seconds later.

// How `gateway start` reads its options. Successful starts: spec/cli/foreground/run-gateway.spec.ts and the journeys.

import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { folderOfEach } from '../../../helpers/folder.ts';
import { suite } from '../../../helpers/suite.ts';
import { complaint, runCommand } from '../against-gateway.ts';

const test = suite('gateway start');
const folder = folderOfEach(test);
const blocker = createServer((socket) => socket.destroy());
/** Runs that get as far as opening ports. */
const RUNS = 6;
const allExited = Promise.withResolvers<void>();
let exits = 0;
let port = '';
test.before(async () => {
  // A run that has ended exits the process after at most 2 s, which here is the process of the specs.
  mock.method(process, 'exit', () => {
    exits += 1;
    if (exits === RUNS) allExited.resolve();
  });
  await once(blocker.listen(0), 'listening');
  port = String((blocker.address() as AddressInfo).port);
});
test.after(async () => {
  await allExited.promise;
  blocker.close();
  mock.restoreAll();
});

test('binds the demo to loopback despite the environment, unless --host is given', async () => {
  const env = { GATEWAY_HOST: '0.0.0.0', MCP_GATEWAY_HOST: '0.0.0.0' };
  const { err } = await runCommand(['gateway', 'start', '--demo', '--port', port], env);
  assert.match(err, new RegExp(`^stagedoor: port ${port} on 127\\.0\\.0\\.1 is already in use`));
  const open = await runCommand(['gateway', 'start', '--demo', '--host', '0.0.0.0', '--port', port]);
  assert.match(open.err, new RegExp(`^stagedoor: port ${port} on 0\\.0\\.0\\.0 is already in use`));
});

test('stores nothing for a demo, and refuses a demo with a database', async () => {
  const words = ['gateway', 'start', '--demo', '--port', port];
  await runCommand(words, {}, folder());
  assert.equal(await readdir(folder()), []);
  const refused = runCommand(words, { GATEWAY_DATABASE_URL: 'sqlite:///kept.db' }, folder());
  const why = '--demo cannot be combined with a database (GATEWAY_DATABASE_URL): a demo keeps nothing';
  assert.ok((await complaint(refused, 2)).startsWith(`stagedoor: ${why}`));
  assert.equal(await readdir(folder()), []);
});

test('names the setting of each port that is in use, one line each', async () => {
  const other = createServer((socket) => socket.destroy()).listen(0);
  await once(other, 'listening');
  const second = String((other.address() as AddressInfo).port);
  const line = (taken: string, place: string) =>
    `port ${taken} on 127.0.0.1 is already in use; choose another in ${place}, ` +
    'or with --port <port>, or --port 0 for a free one';
  const hosts = { MCP_GATEWAY_HOST: '127.0.0.1', GATEWAY_HOST: '127.0.0.1' };
  const env = { ...hosts, MCP_GATEWAY_PORT: port, GATEWAY_PORT: second };
  const both = await runCommand(['gateway', 'start'], env, folder());
  const lines = [line(port, 'MCP_GATEWAY_PORT'), line(second, 'GATEWAY_PORT')];
  assert.equal([both.code, both.err], [2, `stagedoor: ${lines.join('\n')}`]);
  await writeFile(folder('taken.yaml'), `host: 127.0.0.1\nport: ${port}\n`);
  const yaml = await runCommand(['gateway', 'start', '--config', 'taken.yaml'], {}, folder());
  assert.equal([yaml.code, yaml.err], [2, `stagedoor: ${line(port, 'taken.yaml:2, port')}`]);
  await once(other.close(), 'close');
});

test('names the setting or database that it cannot use in one line without secrets', async () => {
  await writeFile(folder('key.yaml'), 'prot: 9000\n');
  const env = { GATEWAY_DATABASE_URL: 'postgresql://me:planted@127.0.0.1:1/db' };
  for (const [words, reason] of [
    [['--config', 'key.yaml'], /^stagedoor: key\.yaml.*"?prot"?.*port[^\n]*$/],
    [['--port', '0', '--host', '127.0.0.1'], /^stagedoor: [^\n]*127\.0\.0\.1:1[^\n]*$/],
  ] as const) {
    const { code, out, err } = await runCommand(['gateway', 'start', ...words], env, folder());
    assert.equal([code, out], [2, ''], err);
    assert.match(err, reason);
    assert.not.match(err, 'planted');
  }
});

test.run();

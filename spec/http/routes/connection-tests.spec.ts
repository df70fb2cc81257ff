// POST /gateway/test: real servers and programs, the rules of a registration, and nothing left behind.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { becomes, eventually } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { endOf } from '../../helpers/outcome.ts';
import { isRunning } from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('connection tests');
const app = appFor(test, () => startWithAccounts({ allowedCommands: [['node', 'allowed.js']] }));
const folder = folderOfAll(test)();

const tryOut = (body: unknown, who: Credentials = app.admin) =>
  app.as(who, 'POST', '/gateway/test', { body });
const program = (script: string) => ({ command: process.execPath, args: ['-e', script] });
/** A program that writes its process id to a file, and then runs the script. */
const noted = (file: string, script: string) =>
  program(`require('fs').writeFileSync(${JSON.stringify(file)}, String(process.pid)); ${script}`);

test('report the era, the server and the number of its tools, and register nothing', async () => {
  for (const era of ['legacy', 'modern'] as const) {
    const backend = await startHttpServer({ era, name: 'far' });
    const { status, body } = await tryOut({
      template_name: 'new',
      instance: { id: 'x', endpoint: backend.url },
    });
    assert.is(status, 200);
    const { duration_ms, tools, ...rest } = body;
    assert.equal(rest, { ok: true, era, server: { name: 'far', version: '1.0.0' } });
    assert.ok(Number(tools) > 3);
    assert.ok(Number(duration_ms) >= 0 && Number(duration_ms) < 10_000);
    await backend.close();
  }
  assert.equal(app.gateway.templates(), []);
  assert.equal(app.gateway.servers(), []);
  assert.is((await app.as(app.admin, 'GET', '/mcp/new/health')).status, 404);
});

test('start a program, and end it after the test', async () => {
  const file = join(folder, 'pid');
  const script = `import(${JSON.stringify(stdioServerPath)})`;
  const { body } = await tryOut({ template_name: 'new', ...noted(file, script) });
  assert.equal([body.ok, body.era], [true, 'legacy'], JSON.stringify(body));
  const pid = Number(await readFile(file, 'utf8'));
  await becomes(() => isRunning(pid), false);
});

test('report why the test failed, with the standard error of the program', async () => {
  const refused = await tryOut({ template_name: 'new', endpoint: 'http://127.0.0.1:1/mcp' });
  const found = [refused.outcome, refused.body.ok, refused.body.stderr];
  assert.equal(found, ['200 BACKEND_UNAVAILABLE', false, []]);
  assert.match(String(refused.body.detail), /refused/);
  const dying = program('console.error("no such key"); process.exit(3)');
  const died = await tryOut({ template_name: 'new', ...dying });
  assert.equal([died.body.ok, died.body.stderr], [false, ['no such key']]);
  assert.match(String(died.body.detail), 'exited with code 3');
});

test('end the program when the caller disconnects', async () => {
  const file = join(folder, 'left');
  const leaving = new AbortController();
  const body = { template_name: 'new', ...noted(file, 'setInterval(() => {}, 1000)') };
  const ask = { body, signal: leaving.signal };
  const asked = endOf(app.as(app.admin, 'POST', '/gateway/test', ask));
  const read = async () => Number(await readFile(file, 'utf8').catch(() => '0'));
  const pid = await eventually(read, (found) => found > 0);
  leaving.abort();
  await asked;
  await becomes(() => isRunning(pid), false);
});

test('are shared between callers', async () => {
  const keyOf = () => app.key(['gateway:write', 'admin']);
  const [greedy, other] = [await keyOf(), await keyOf()];
  const leaving = new AbortController();
  const files = ['first', 'second'].map((name) => join(folder, name));
  const running = files.map((file) => {
    const body = { template_name: 'new', ...noted(file, 'setInterval(() => {}, 1000)') };
    return endOf(app.as(greedy, 'POST', '/gateway/test', { body, signal: leaving.signal }));
  });
  await becomes(() => files.every((file) => existsSync(file)), true);
  const far = { template_name: 'new', endpoint: 'http://127.0.0.1:1/mcp' };
  assert.is((await tryOut(far, greedy)).outcome, '429 QUEUE_FULL');
  assert.is((await tryOut(far, other)).outcome, '200 BACKEND_UNAVAILABLE');
  leaving.abort();
  await Promise.all(running);
});

test('follow the rules of a registration', async () => {
  const writer = await app.key(['gateway:write']);
  for (const [instance, outcome, who] of [
    [{ command: 'node evil.js' }, '403 COMMAND_NOT_ALLOWED', writer],
    [{ command: 'node allowed.js', force: true }, '403 INSUFFICIENT_PERMISSIONS', writer],
    [{ endpoint: 'http://169.254.169.254/' }, '400 ENDPOINT_NOT_ALLOWED', app.admin],
    [{ endpoint: 'http://a:b@127.0.0.1/' }, '400 ENDPOINT_NOT_ALLOWED', app.admin],
    [{}, '400 CONFIG_INCOMPLETE', app.admin],
    [{ endpoint: 'http://127.0.0.1:1', weight: 0 }, '422 VALIDATION_ERROR', app.admin],
  ] as const)
    assert.is((await tryOut({ template_name: 'new', ...instance }, who)).outcome, outcome, outcome);
  const ran = await tryOut({ template_name: 'new', command: 'node allowed.js' }, writer);
  assert.equal([ran.status, ran.body.ok], [200, false]);
});

test('enter no denied network', async () => {
  const denied = await startApp({ gateway: { deniedNetworks: ['127.0.0.0/8', '::1/128'] } });
  const body = { template_name: 'new', endpoint: 'http://localhost:1/mcp' };
  assert.match(String((await denied.ask('POST', '/gateway/test', { body })).body.detail), 'not allowed');
  await denied.close();
});

test.run();

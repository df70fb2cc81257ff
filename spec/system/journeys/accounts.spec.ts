// The steps of a new user with accounts: start in an empty folder, find the first password, log in, create a user and a key,
// call with the key, restart, revoke. And the same on the database when no gateway runs.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { runAtTerminal } from '../../cli/commands/against-gateway.ts';
import type { RecordingOptions } from '../../cli/recording-terminal.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { caller, callTool, statusAndCode, toolText } from '../../helpers/clients/caller.ts';
import { becomes, untilStatus } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { AS_IT_COMES, binPath, Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: accounts', { timeoutMs: 120_000 });
const onTerminal = test.needs(
  process.platform === 'linux' && spawnSync('python3', ['-c', 'import pty']).status === 0,
  'needs Linux and python3, whose pty module makes a terminal',
);

/** The folder of the gateway, with its database and its state. */
const folder = folderOfEach(test);
/** The folder of the user's settings. */
const settings = folderOfEach(test);
let port = 0;
let url = '';
let gateway: Program | undefined;
test.before.each(async () => {
  port = await freePort();
  url = `http://127.0.0.1:${port}`;
});
test.after.each(async () => {
  await gateway?.remove();
  gateway = undefined;
});

test('login, a new user and a new key work from an empty folder, also after a restart, until the key is revoked', async () => {
  await start();
  const password = firstPassword();
  assert.not.match(`${gateway?.out}${gateway?.err}`, password);

  const right = await cli(['gateway', 'login', 'admin', '--password', '-'], `${password}\n`);
  assert.equal([right.code, right.err], [0, '']);
  assert.match(right.out, new RegExp(`^admin is logged in at ${url} for 1 h 0 min; `));
  const kept = settings('stagedoor', 'credentials.json');
  assert.equal([statSync(kept).mode & 0o777, statSync(join(kept, '..')).mode & 0o777], [0o600, 0o700]);
  const token: string = JSON.parse(readFileSync(kept, 'utf8')).tokens[url].access_token;

  await succeeds(['user', 'create', 'ada', '--password', '-'], 'correct horse\n');
  const made = await succeeds(['api-key', 'create', 'ci', '--permissions', 'tools:call', '--expires', '30d']);
  assert.match(made.out, /^sd_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  const key = made.out;
  const command = `'${process.execPath}' '${stdioServerPath}' --name=one`;
  await succeeds(['instance', 'register', 'demo', '--id', 'one', '--wait', '20', '--command', command]);

  assert.is(toolText(await call(key)), 'one');

  await stop();
  await start();
  await becomes(async () => toolText(await call(key)), 'one');

  await succeeds(['api-key', 'revoke', 'ci']);
  assert.equal(statusAndCode(await call(key)), [401, 'INVALID_CREDENTIALS']);

  await succeeds(['gateway', 'logout']);
  assert.is((await cli(['user', 'list'])).code, 1);
  for (const secret of [password, token, key, 'correct horse'])
    assert.not.match(`${gateway?.out}${gateway?.err}`, secret);
});

test('account commands work on the database without a gateway, and replace a lost password', async () => {
  await start();
  await stop();
  assert.ok(existsSync(folder('initial-admin-password')));
  const created = await local(
    ['user', 'create', 'ada', '--role', 'admin', '--password', '-'],
    'correct horse',
  );
  assert.is(created.code, 0, created.err);
  const key = (await local(['api-key', 'create', 'ci', '--role', 'admin'])).out.trim();
  assert.match(key, /^sd_/);
  const replaced = await local(['user', 'set-password', 'admin', '--password', '-'], 'battery staple');
  assert.is(replaced.code, 0, replaced.err);

  await start();
  assert.is(existsSync(folder('initial-admin-password')), false, 'it is no password any more');
  await succeeds(['gateway', 'login', 'admin', '--password', '-'], 'battery staple');
  const ci = caller(url, { 'X-API-Key': key });
  assert.is((await ci('GET /gateway/audit')).status, 200);

  // The running gateway learns of changes in the database.
  assert.is((await local(['user', 'delete', 'ada'])).code, 0);
  assert.is((await local(['api-key', 'revoke', 'ci'])).code, 0);
  await untilStatus(401, () => ci('GET /gateway/audit'));
});

onTerminal('login at a terminal hides the password, and restores the terminal', async () => {
  await start({ GATEWAY_ADMIN_PASSWORD: 'correct horse' });
  const typed = await inTerminal(['gateway', 'login', 'admin'], 'correct horse\r');
  assert.match(typed.said, `Password of admin at ${url}: `);
  assert.match(typed.said, 'admin is logged in at ');
  assert.not.match(typed.said, 'correct horse');
  assert.equal([typed.status, typed.echoes], [0, true]);

  const cancelled = await inTerminal(['gateway', 'login', 'admin'], 'corr\u0003');
  assert.match(cancelled.said, /stagedoor: cancelled\s*$/);
  assert.equal([cancelled.status, cancelled.echoes], [130, true]);
});

test.run();

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = new Program(['gateway', 'start', '--port', String(port)], {
    folder: folder(),
    env: { ...AS_IT_COMES, ...env },
  });
  await gateway.url();
}

async function stop(): Promise<void> {
  gateway?.signal('SIGTERM');
  assert.equal(await gateway?.end(), { code: 0, signal: null });
  await gateway?.remove();
}

/** The password that a first start without a terminal leaves in a file. */
function firstPassword(): string {
  const path = folder('initial-admin-password');
  assert.is(statSync(path).mode & 0o777, 0o600);
  return readFileSync(path, 'utf8').trim();
}

/** A command against the gateway; in this process, like all commands except those at a terminal. */
function cli(words: readonly string[], input?: string) {
  return run(words, { env: { STAGEDOOR_URL: url } }, input);
}

function run(words: readonly string[], { env, ...place }: RecordingOptions, input: string | undefined) {
  const piped = input === undefined ? {} : { line: input.trimEnd() };
  return runAtTerminal(words, { env: { XDG_CONFIG_HOME: settings(), ...env }, ...piped, ...place });
}

async function succeeds(words: readonly string[], input?: string) {
  const outcome = await cli(words, input);
  assert.is(outcome.code, 0, `${words.join(' ')}: ${outcome.err}`);
  return outcome;
}

/** A command of the operator, in the folder of the gateway, on its database. */
function local(words: readonly string[], input?: string) {
  return run([...words, '--local'], { env: { USER: 'operator' }, folder: folder() }, input);
}

function call(key: string) {
  return callTool(caller(url, { 'X-API-Key': key }), 'demo', 'name');
}

/** Runs a command line in a new terminal, types after its question, and reads the state of the terminal afterwards. */
async function inTerminal(words: readonly string[], keys: string) {
  const { stdout, stderr, status } = spawnSync(
    'python3',
    ['-c', typist, keys, process.execPath, binPath, ...words],
    {
      encoding: 'utf8',
      timeout: 30_000,
      env: { PATH: process.env.PATH, HOME: settings(), XDG_CONFIG_HOME: settings(), STAGEDOOR_URL: url },
    },
  );
  assert.is(status, 0, stderr);
  const seen: { said: string; status: number; echoes: boolean } = JSON.parse(stdout);
  return seen;
}

const typist = `
import json, os, pty, sys, termios
keys = sys.argv[1]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
said, typed = b'', False
while True:
    try:
        part = os.read(terminal, 65536)
    except OSError:
        break
    if not part: break
    said += part
    if not typed and b': ' in said and not termios.tcgetattr(terminal)[3] & termios.ECHO:
        typed = True
        os.write(terminal, keys.encode())
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
echoes = bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
print(json.dumps({ 'said': said.decode(), 'status': status, 'echoes': echoes }))
`;

// Plants a secret in every input that takes one, makes requests to a real gateway that succeed and that fail, and searches for
// the secrets in all of its output: output, log, answers, process lists, environments of children.

import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { caller, newKey, tokenOf } from '../../helpers/clients/caller.ts';
import { canFindProcesses, NO_PROCESSES, readProcessFile } from '../../helpers/programs/processes.ts';
import { Program, runProgram } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: secrets', { timeoutMs: 60_000 });
const needsProcesses = test.needs(canFindProcesses, NO_PROCESSES);

/** Texts that do not occur by accident. */
const planted = {
  secretKey: 'planted-secret-key-'.repeat(3),
  adminPassword: 'planted-admin-password',
  encryptionKey: 'planted-encryption-key-'.repeat(2),
  redisPassword: 'planted-redis-password',
  userPassword: 'planted-user-password',
  wrongPassword: 'planted-wrong-password',
  variable: 'planted-variable-of-a-child',
  header: 'planted-header-of-a-backend',
  query: 'planted-query-of-a-caller',
  bearer: 'planted.bearer.token',
  apiKey: 'sd_0123456789abcdef_plantedApiKeyOfAStrangerPlantedApiKeyOfA00',
};
const SETTINGS = {
  GATEWAY_SECRET_KEY: planted.secretKey,
  GATEWAY_ADMIN_PASSWORD: planted.adminPassword,
  GATEWAY_ENCRYPTION_KEY: planted.encryptionKey,
  // Nothing listens there: limits are counted in memory, with a warning.
  GATEWAY_REDIS_URL: `redis://me:${planted.redisPassword}@127.0.0.1:1`,
};
let gateway: Program;
test.after.each(() => gateway.remove());

needsProcesses('no secret is in output, answers, process lists or environments of children', async () => {
  const backend = await startHttpServer({ name: 'far' });
  gateway = new Program(['gateway', 'start', '--port', '0', '--host', '127.0.0.1', '--log-level', 'trace'], {
    env: {
      ...SETTINGS,
      GATEWAY_AUTH_ENABLED: 'true',
      GATEWAY_DATABASE_URL: 'sqlite:///gateway.db',
    },
  });
  const url = await gateway.url();
  const answers: string[] = [];
  const ask = async (request: string, body?: object, headers: Record<string, string> = {}) => {
    const answer = await caller(url, headers)(request, body);
    answers.push([...answer.headers].join('\n'), JSON.stringify(answer.body));
    return { status: answer.status, body: Object(answer.body) };
  };

  const login = await ask('POST /auth/login', { username: 'admin', password: planted.adminPassword });
  assert.is(login.status, 200);
  const admin = { Authorization: `Bearer ${login.body.access_token}` };
  await ask('POST /auth/login', { username: 'admin', password: planted.wrongPassword });
  await ask('POST /auth/login', { username: planted.userPassword, password: [planted.wrongPassword] });
  const user = { username: 'ada', email: 'ada@localhost', password: planted.userPassword };
  assert.is((await ask('POST /auth/users', user, admin)).status, 201);
  assert.is((await ask('POST /auth/users', user, admin)).status, 400);
  await ask(
    'POST /auth/users',
    { ...user, username: 'bo', password: `${planted.userPassword}`.repeat(9) },
    admin,
  );
  const key = await ask('POST /auth/api-keys', { name: 'ci', permissions: ['tools:call'] }, admin);
  assert.is(key.status, 201);
  for (const path of ['/auth/users', '/auth/api-keys', '/auth/me'])
    await ask(`GET ${path}`, undefined, admin);

  const near = {
    id: 'near',
    command: process.execPath,
    args: [stdioServerPath],
    env_vars: { CHILD_SECRET: planted.variable },
  };
  const far = { id: 'far', endpoint: backend.url, headers: { 'X-Backend-Key': planted.header } };
  for (const instance of [near, far]) {
    const made = await ask('POST /gateway/register?wait=10', { template_name: 'mixed', instance }, admin);
    assert.equal([made.status, made.body.healthy], [201, true]);
  }
  const broken = { ...near, id: 'broken', args: ['-e', 'process.exit(7)'] };
  await ask('POST /gateway/register?wait=1', { template_name: 'broken', instance: broken }, admin);
  await ask('POST /gateway/register', { template_name: 'mixed', instance: { ...near, weight: -1 } }, admin);
  for (const path of [
    '/gateway/registry',
    '/servers?include_health=true',
    '/gateway/stats',
    '/gateway/audit',
  ])
    assert.is((await ask(`GET ${path}`, undefined, admin)).status, 200, path);

  const call = { name: 'echo', arguments: { text: 'hello' } };
  for (let turn = 0; turn < 4; turn += 1) {
    const called = await ask('POST /mcp/mixed/tools/call', call, { 'X-API-Key': key.body.key });
    assert.is(called.status, 200);
  }
  const strangers: Record<string, string>[] = [
    { Authorization: `Bearer ${planted.bearer}` },
    { Authorization: `Basic ${planted.bearer}` },
    { 'X-API-Key': planted.apiKey },
    { Cookie: `session=${planted.bearer}` },
  ];
  for (const stranger of strangers) {
    const refused = await ask(`POST /mcp/mixed/tools/call?token=${planted.query}`, call, stranger);
    assert.is(refused.status, 401);
  }
  await ask(`GET /gateway/nothing?token=${planted.query}`, undefined, admin);

  const config = await runProgram(['config'], {
    env: {
      ...SETTINGS,
      GATEWAY_DATABASE_URL: `postgresql://me:${planted.redisPassword}@127.0.0.1:1/db`,
    },
  });
  assert.is(config.code, 0);

  const processes = whatProcessesShow(gateway);
  gateway.signal('SIGTERM');
  await gateway.end();
  await backend.close();

  // The only answers that contain a secret are those that issue it to its owner.
  const handedOut = [login.body.access_token, key.body.key];
  const shown = answers.join('\n').replaceAll(handedOut[0], '').replaceAll(handedOut[1], '');
  const secrets = { ...planted, token: handedOut[0], key: handedOut[1] };
  const places = {
    shown,
    log: gateway.out + gateway.err,
    config: config.out + config.err,
    lists: processes.lists,
  };
  assert.match(places.log, 'request'); // the log has requests
  for (const [place, text] of Object.entries(places)) {
    for (const [name, secret] of Object.entries(secrets))
      assert.not.match(text, secret, `${name} in ${place}`);
  }
  // A child has its own variable and no secret of the gateway.
  assert.match(processes.environments, planted.variable);
  for (const [name, secret] of Object.entries(secrets)) {
    if (name !== 'variable') assert.not.match(processes.environments, secret, `${name} in a child`);
  }
});

test('no password, key, token or header is stored in plain text, and the key file is readable for its owner only', async () => {
  const home = new Program(['gateway', 'start', '--port', '0', '--host', '127.0.0.1'], {
    env: {
      GATEWAY_AUTH_ENABLED: 'true',
      GATEWAY_DATABASE_URL: 'sqlite:///state/gateway.db',
      GATEWAY_ADMIN_PASSWORD: planted.adminPassword,
    },
  });
  gateway = home;
  // Created before the gateway needs it: the start takes a second.
  mkdirSync(join(home.home, 'state'), { recursive: true });
  const url = await home.url();
  const token = await tokenOf(url, 'admin', planted.adminPassword);
  const admin = caller(url, token);
  const { headers } = await newKey(admin, 'ci');
  const instance = {
    id: 'far',
    endpoint: 'http://127.0.0.1:1',
    headers: { 'X-Backend-Key': planted.header },
  };
  await admin('POST /gateway/register', { template_name: 'far', instance });
  home.signal('SIGTERM');
  await home.end();

  const files = filesUnder(home.home).map((path) => ({ path, bytes: readFileSync(path).toString('latin1') }));
  assert.ok(files.some(({ path }) => path.endsWith('gateway.db')));
  const stored = {
    password: planted.adminPassword,
    header: planted.header,
    // Not the part after the last underscore: the secret may contain underscores.
    secret: headers['X-API-Key'].slice(-43),
    token: token.Authorization.slice('Bearer '.length),
  };
  for (const { path, bytes } of files)
    for (const [name, secret] of Object.entries(stored))
      assert.not.match(bytes, secret, `${name} in ${path}`);
  const keyFile = files.find(({ path }) => path.endsWith('gateway.key'));
  assert.ok(keyFile, 'the signing secret is beside the database');
  if (process.platform !== 'win32') assert.is(statSync(keyFile.path).mode & 0o077, 0);
});

/** Command lines of the program and of its descendants, and the environments of these. */
function whatProcessesShow(program: Program): { lists: string; environments: string } {
  const children = program.descendants();
  return {
    lists: [program.process.pid, ...children].map((pid) => readProcessFile(pid, 'cmdline')).join('\n'),
    environments: children.map((pid) => readProcessFile(pid, 'environ')).join('\n'),
  };
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesUnder(path) : [path];
  });
}

test.run();

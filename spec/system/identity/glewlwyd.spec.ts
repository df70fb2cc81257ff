// Users sign in at a gateway with an account of Glewlwyd, an identity provider of other authors in C: Debian's package, with a database
// of its own in a folder.

import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gunzipSync } from 'node:zlib';
import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../../src/config/config.ts';
import { type RunningServer, startServer } from '../../../src/server/server.ts';
import { serving } from '../../helpers/backends/function-backend.ts';
import { newProof, pageOf, ScriptedBrowser, textOf } from '../../helpers/browsers/scripted-browser.ts';
import { eventually } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { PASSWORD } from '../../helpers/http/accounts.ts';
import { linkTo } from '../../helpers/identity/company-provider.ts';
import { OAuthCaller } from '../../helpers/identity/oauth-caller.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: an account of Glewlwyd', { timeoutMs: 120_000 });
const PROGRAM = '/usr/bin/glewlwyd';
const SCHEMA = '/usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz';
const MODULES = '/usr/lib/glewlwyd';
const isHere = existsSync(PROGRAM) && existsSync(SCHEMA);
/** With `-`, which the header of the gateway encodes and Glewlwyd does not decode: the gateway then sends it in the body. */
const CLIENT = { client_id: 'stagedoor', client_secret: 'a-secret-of-the-gateway-there' };
const USER = { username: 'eve', password: 'a password at the provider' };
const folder = folderOfAll(test);
let glewlwyd: ChildProcess | undefined;
let server: RunningServer | undefined;
test.after(async () => {
  glewlwyd?.kill('SIGKILL');
  await server?.close();
});

test.needs(isHere, `needs ${PROGRAM} and its schema in ${SCHEMA}`)(
  'signs its user in, who gets an account of this gateway with the role of the group',
  async () => {
    const provider = await started(await freePort());
    const gateway = await gatewayOf(provider.issuer);
    const oauth = new OAuthCaller(gateway.urls[0] ?? '');
    const clientId = await oauth.client();
    const proof = newProof();
    const browser = new ScriptedBrowser(oauth.url);
    pageOf(await browser.open(await oauth.authorizationUrl(clientId, proof)));
    const there = (await browser.open(linkTo('Glewlwyd', browser))) as URL;
    assert.is(there.origin, new URL(provider.issuer).origin);
    await provider.admin('POST', 'client/', {
      ...{ ...CLIENT, password: CLIENT.client_secret, confidential: true, enabled: true, scope: [] },
      ...{ redirect_uri: [there.searchParams.get('redirect_uri')], authorization_type: ['code'] },
      token_endpoint_auth_method: ['client_secret_basic', 'client_secret_post'],
    });
    const consent = pageOf(await browser.open(await provider.answerTo(there)));
    assert.match(textOf(consent), 'It acts as eve');
    const back = (await browser.press('Allow')) as URL;
    const { body } = await oauth.redeem(clientId, back.searchParams.get('code') ?? '', proof);
    assert.is(await oauth.use(String(body.access_token)), 200);
    const { email, role } =
      (await gateway.auth.accounts.users()).find((each) => each.username === 'eve') ?? {};
    assert.equal([email, role], ['eve@example.com', 'user']);
  },
);

async function gatewayOf(issuer: string): Promise<RunningServer> {
  const roles = { Eve: { role: 'user', templates: ['tools'] } };
  const env = {
    ...{ GATEWAY_ADMIN_PASSWORD: PASSWORD, GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' },
    GATEWAY_AUTH_PROVIDERS: JSON.stringify([{ issuer, label: 'Glewlwyd', ...CLIENT, roles }]),
  };
  const config = loadConfig({ cwd: folder(), env, flags: { port: '0', host: '127.0.0.1' } });
  server = await startServer(config, { log: pino({ level: 'silent' }) });
  await server.gateway.register('tools', { id: 'tools', handler: serving({}) }, { waitMs: 20_000 });
  return server;
}

/** Glewlwyd with the user and without a client. */
async function started(port: number) {
  const base = `http://127.0.0.1:${port}`;
  const issuer = `${base}/api/oidc`;
  const database = join(folder(), 'glewlwyd.db');
  const schema = new DatabaseSync(database);
  schema.exec(gunzipSync(readFileSync(SCHEMA)).toString());
  schema.close();
  const config = join(folder(), 'glewlwyd.conf');
  await writeFile(config, configOf(port, base, database));
  glewlwyd = spawn(PROGRAM, [`--config-file=${config}`], { stdio: 'ignore' });
  const ask = () => fetch(`${base}/config`).catch(() => undefined);
  await eventually(ask, (answer) => answer?.status === 200, 20_000);
  const as = async (cookie: string, method: string, path: string, body: object): Promise<Response> => {
    const headers = { 'Content-Type': 'application/json', Cookie: cookie };
    const answer = await fetch(`${base}/api/${path}`, { method, headers, body: JSON.stringify(body) });
    assert.is(answer.status, 200, `${method} ${path}: ${await answer.clone().text()}`);
    return answer;
  };
  const login = async (user: object) =>
    (await as('', 'POST', 'auth/', user)).headers
      .getSetCookie()
      .map((each) => each.replace(/;.*/, ''))
      .join();
  const admin = await login({ username: 'admin', password: 'password' });
  await as(admin, 'POST', 'mod/plugin/', pluginOf(issuer));
  await as(admin, 'POST', 'user/', {
    ...{ ...USER, name: 'Eve', email: 'eve@example.com', enabled: true, scope: ['openid', 'g_profile'] },
  });
  return {
    issuer,
    admin: (method: string, path: string, body: object) => as(admin, method, path, body),
    /** The user signs in, and allows what the gateway asks for: the address to which the browser is sent. */
    answerTo: async (there: URL): Promise<URL> => {
      const cookie = await login(USER);
      await as(cookie, 'PUT', `auth/grant/${CLIENT.client_id}`, { scope: 'openid' });
      const answer = await fetch(`${there}&g_continue`, { headers: { Cookie: cookie }, redirect: 'manual' });
      return new URL(answer.headers.get('location') ?? '', base);
    },
  };
}

/** As in the example of the package. */
function configOf(port: number, base: string, database: string): string {
  const lines = {
    ...{ port, bind_address: '"127.0.0.1"', external_url: `"${base}"`, api_prefix: '"api"' },
    ...{ login_url: '"login.html"', log_mode: '"console"', log_level: '"INFO"', hash_algorithm: '"SHA512"' },
    ...{ session_key: '"GLEWLWYD2_SESSION_ID"', session_expiration: 2_419_200, login_api_enabled: true },
    ...{ admin_scope: '"g_admin"', profile_scope: '"g_profile"', cookie_secure: 0 },
    ...{ admin_session_authentication: '"cookie"', profile_session_authentication: '"cookie"' },
    ...{ user_module_path: `"${MODULES}/user"`, client_module_path: `"${MODULES}/client"` },
    ...{ user_auth_scheme_module_path: `"${MODULES}/scheme"`, plugin_module_path: `"${MODULES}/plugin"` },
    database: `{ type = "sqlite3" path = "${database}" }`,
  };
  return Object.entries(lines)
    .map(([name, value]) => `${name} = ${value};\n`)
    .join('');
}

function pluginOf(iss: string): object {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const claim = { type: 'string', mandatory: true, scope: [] };
  return {
    ...{ module: 'oidc', name: 'oidc', display_name: 'OpenID Connect' },
    parameters: {
      ...{ iss, 'subject-type': 'public', 'jwt-type': 'ecdsa', 'jwt-key-size': '256', 'jwks-show': true },
      key: privateKey.export({ format: 'pem', type: 'sec1' }),
      cert: publicKey.export({ format: 'pem', type: 'spki' }),
      ...{ 'access-token-duration': 3_600, 'refresh-token-duration': 3_600, 'code-duration': 600 },
      ...{ 'auth-type-code-enabled': true, 'auth-type-refresh-enabled': true },
      ...{ 'pkce-allowed': true, 'pkce-required': true, scope: [], 'additional-parameters': [] },
      ...{ 'name-claim': 'mandatory', 'email-claim': 'mandatory', 'scope-claim': 'no' },
      claims: [
        { ...claim, name: 'preferred_username', 'user-property': 'username' },
        // Users have no groups there: the name stands for one.
        { ...claim, name: 'groups', 'user-property': 'name' },
      ],
    },
  };
}

test.run();

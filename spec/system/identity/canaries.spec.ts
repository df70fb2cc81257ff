// What the sign-in and the accounts at backends must keep to themselves: tokens, codes, secrets of clients, cookies and states. A real gateway
// serves a whole life of an account, with its failures; then everything that others may read is searched: environments, arguments and input of
// programs, output and log, events, audit log, traces, answers, and the file of the database.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { DEVICE_GRANT } from '../../../src/authorization-server/clients/client-record.ts';
import { everythingProgram } from '../../fixtures/everything-server.ts';
import { type OAuthBackend, startOAuthBackend } from '../../fixtures/oauth-backend.ts';
import { isPage, pageOf, ScriptedBrowser, textOf } from '../../helpers/browsers/scripted-browser.ts';
import { type Caller, caller, tokenOf } from '../../helpers/clients/caller.ts';
import { type OAuthHarness, startWithSignIn } from '../../helpers/identity/oauth-gateway.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../../helpers/network/otlp-receiver.ts';
import { PASSWORD, register } from '../../helpers/programs/mcp-program.ts';
import {
  canFindProcesses,
  descendantsOf,
  NO_PROCESSES,
  readProcessFile,
} from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: what the sign-in keeps to itself', { timeoutMs: 120_000 });
const needsProcesses = test.needs(canFindProcesses, NO_PROCESSES);
const CLIENT_SECRET = 'planted-secret-of-a-client-at-a-backend';

let backend: OAuthBackend;
let collector: OtlpReceiver;
let gateway: OAuthHarness;
test.after(async () => {
  await gateway?.remove();
  await backend?.close();
  await collector?.close();
});

needsProcesses(
  'no token, code, cookie, state or secret of a client is where others can read it',
  async () => {
    collector = await startOtlpReceiver();
    gateway = await startWithSignIn({
      env: {
        ...{ GATEWAY_LOG_LEVEL: 'trace', GATEWAY_DATABASE_URL: 'sqlite:///gateway.db' },
        ...{ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' },
        ...{ GATEWAY_ENCRYPTION_KEY: 'a key of this spec '.repeat(2), GATEWAY_AUDIT_CALLS: 'true' },
      },
    });
    const { url, program, oauth } = gateway;
    const redirect_uris = [`${url}/connections/callback`];
    const known = { client_id: 'gateway', client_secret: CLIENT_SECRET, redirect_uris };
    backend = await startOAuthBackend({ clients: [known], registersClients: false });
    backend.account = 'ada at work';

    const secrets = new Map<string, string>([['secret of the client', CLIENT_SECRET]]);
    const answers: string[] = [];
    const watched =
      (ask: Caller): Caller =>
      async (request, body) => {
        const answer = await ask(request, body);
        answers.push(`${request} ${[...answer.headers].join(' ')} ${JSON.stringify(answer.body)}`);
        return answer;
      };
    const admin = watched(gateway.admin);
    const events = await listenTo(`${url}/events`, await tokenOf(url, 'admin', PASSWORD));

    const input = join(program.home, 'input-of-the-program');
    const { command, args } = everythingProgram();
    const recorded = { command: 'sh', args: ['-c', 'tee "$0" | exec "$@"', input, command, ...args] };
    await register(admin, 'programs', [{ id: 'one', ...recorded }]);
    const { client_id, client_secret } = known;
    const auth = { mode: 'oauth', who: 'user', client_id, client_secret };
    await register(admin, 'notes', [{ id: 'one', endpoint: backend.url, auth }]);

    const clientId = await oauth.client();
    const browser = new ScriptedBrowser(url);
    const tokens = await oauth.signIn(clientId, { username: 'ada', browser });
    secrets.set('access token', tokens.access_token).set('refresh token', tokens.refresh_token);
    const ada = watched(caller(url, { Authorization: `Bearer ${tokens.access_token}` }));
    const whoami = () => ada('POST /mcp/notes/tools/call', { name: 'whoami', arguments: {} });
    const refused = await whoami();
    assert.is(refused.status, 403);
    await browser.open(String(Object(refused.body).connect_url));
    const there = await browser.press(`Continue to ${new URL(backend.url).host}`);
    assert.not.ok(isPage(there));
    secrets.set('state', new URL(String(there)).searchParams.get('state') ?? '');
    const back = await fetch(there as URL, { redirect: 'manual' });
    const done = pageOf(await browser.open(back.headers.get('location') ?? ''));
    assert.match(textOf(done), 'The account is connected');
    for (const [n, { value }] of browser.cookies.entries()) secrets.set(`cookie ${n}`, value);
    assert.is((await whoami()).status, 200);
    assert.is(
      (await ada('POST /mcp/programs/tools/call', { name: 'test_simple_text', arguments: {} })).status,
      200,
    );

    backend.expireTokens();
    assert.is((await whoami()).status, 200);
    assert.is(backend.refreshes, 1);
    const next = await oauth.refresh(clientId, tokens.refresh_token);
    assert.is(next.status, 200);
    secrets.set('next access token', String(next.body.access_token));
    secrets.set('next refresh token', String(next.body.refresh_token));
    await signInByDevice(url, browser, secrets);
    backend.isDown = true;
    backend.expireTokens();
    assert.is.not((await whoami()).status, 200);
    backend.isDown = false;
    backend.endGrants();
    for (const ask of [caller(url, { Authorization: `Bearer ${tokens.access_token}x` }), admin, ada]) {
      await watched(ask)('POST /mcp/notes/tools/call', { name: 'whoami', arguments: {} });
      await watched(ask)('POST /mcp/notes', { token: tokens.access_token.slice(0, 9) });
    }
    for (const path of [
      '/gateway/connections',
      '/gateway/registry',
      '/servers',
      '/auth/grants',
      '/gateway/audit?limit=500',
    ])
      assert.is((await admin(`GET ${path}`)).status, 200, path);
    for (const [n, text] of backend.issued.entries()) secrets.set(`issued by the backend ${n}`, text);
    assert.ok(backend.issued.length >= 5);

    const children = descendantsOf(program.process.pid ?? 0);
    const places = new Map<string, string>();
    for (const file of ['environ', 'cmdline'] as const)
      places.set(`${file} of programs`, children.map((pid) => readProcessFile(pid, file)).join('\n'));
    assert.match(places.get('cmdline of programs') ?? '', input);
    places.set('input of a program', readFileSync(input, 'latin1'));
    assert.match(places.get('input of a program') ?? '', 'test_simple_text');
    const files = ['gateway.db', 'gateway.db-wal'].map((name) => join(program.home, name)).filter(existsSync);
    places.set('database', files.map((file) => readFileSync(file, 'latin1')).join('\n'));
    assert.ok(files.length > 0);
    program.signal('SIGTERM');
    await program.end();
    places.set('output', program.out + program.err);
    places.set('events', await events.text);
    places.set('answers', answers.join('\n'));
    places.set('traces', collector.requests.map(({ body }) => String(body)).join('\n'));
    for (const [place, sign] of [
      ['output', 'notes'],
      ['events', 'notes'],
      ['answers', 'CONNECTION_REQUIRED'],
      ['traces', 'whoami'],
    ] as const)
      assert.ok(places.get(place)?.includes(sign), `${place}: ${places.get(place)?.slice(0, 2_000)}`);

    const found: string[] = [];
    for (const [name, secret] of secrets) {
      assert.ok(secret.length >= (name.startsWith('user code') ? 8 : 20), name);
      for (const [place, text] of places) if (text.includes(secret)) found.push(`${name} in ${place}`);
    }
    assert.equal(found, []);
    assert.not.match([...places.values()].join('\n'), PASSWORD);
  },
);

/** As `gateway login --device`, with a code that is mistyped once, and entered and followed as a link. */
async function signInByDevice(url: string, browser: ScriptedBrowser, secrets: Map<string, string>) {
  const client_id = 'stagedoor-cli';
  const ask = async (path: string, fields: Readonly<Record<string, string>>) => {
    const answer = await fetch(url + path, { method: 'POST', body: new URLSearchParams(fields) });
    return { status: answer.status, body: Object(await answer.json()) };
  };
  for (const way of ['entered', 'followed']) {
    const { body } = await ask('/oauth/device_authorization', { client_id, scope: 'tools:call' });
    const { device_code, user_code, verification_uri, verification_uri_complete } = body;
    secrets.set(`device code ${way}`, device_code).set(`user code ${way}`, user_code);
    secrets.set(`user code ${way}, without its sign`, user_code.replace('-', ''));
    const poll = () => ask('/oauth/token', { grant_type: DEVICE_GRANT, client_id, device_code });
    assert.is((await poll()).body.error, 'authorization_pending');
    await browser.open(way === 'entered' ? verification_uri : verification_uri_complete);
    if (way === 'entered') {
      await browser.press('Next', { user_code: `${user_code}X` });
      await browser.press('Next', { user_code });
    }
    pageOf(await browser.press('Allow'));
    const { status, body: tokens } = await poll();
    assert.is(status, 200, JSON.stringify(tokens));
    secrets.set(`access token of a device ${way}`, tokens.access_token);
    secrets.set(`refresh token of a device ${way}`, tokens.refresh_token);
    secrets.set(`proof of a device ${way}`, tokens.proof_secret);
    assert.is((await poll()).body.error, 'invalid_grant');
  }
}

/** `text` resolves when the server ends the stream. */
async function listenTo(
  url: string,
  headers: { readonly Authorization: string },
): Promise<{ readonly text: Promise<string> }> {
  const response = await fetch(url, { headers });
  assert.is(response.status, 200);
  return { text: response.text().catch(String) };
}

test.run();

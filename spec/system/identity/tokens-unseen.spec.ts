// What a user signs in with, and what the gateway gets for the user at a server, with a real gateway that logs everything, traces and
// audits: none of it is in what the gateway writes, answers or gives to the programs that it starts.

import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { type OAuthBackend, startOAuthBackend } from '../../fixtures/oauth-backend.ts';
import { newProof, ScriptedBrowser } from '../../helpers/browsers/scripted-browser.ts';
import { tokenOf } from '../../helpers/clients/caller.ts';
import { CALLBACK } from '../../helpers/identity/oauth-caller.ts';
import { type OAuthHarness, startWithSignIn } from '../../helpers/identity/oauth-gateway.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../../helpers/network/otlp-receiver.ts';
import { PASSWORD, register } from '../../helpers/programs/mcp-program.ts';
import { canFindProcesses, readProcessFile } from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: tokens that nothing shows', { timeoutMs: 180_000 });
const PROGRAM = fileURLToPath(new URL('../../fixtures/stdio-server.ts', import.meta.url));
let backend: OAuthBackend;
let collector: OtlpReceiver;
let gateway: OAuthHarness;
test.before(async () => {
  [backend, collector] = [await startOAuthBackend(), await startOtlpReceiver()];
  gateway = await startWithSignIn({
    env: {
      GATEWAY_LOG_LEVEL: 'trace',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      ...{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_BSP_SCHEDULE_DELAY: '100' },
    },
  });
  const auth = { mode: 'oauth', who: 'user' };
  await register(gateway.admin, 'notes', [{ id: 'one', endpoint: backend.url, auth }]);
  await register(gateway.admin, 'near', [{ id: 'one', command: process.execPath, args: [PROGRAM] }]);
});
test.after(async () => {
  await gateway.remove();
  await backend.close();
  await collector.close();
});

test('are in no log, event, error, trace, metric or audit entry, and in no environment of a child', async () => {
  const { oauth, url, admin, program } = gateway;
  const secrets = new Map<string, string>([['the password', PASSWORD]]);
  const answers: string[] = [];
  const keep = (name: string, value: unknown) => {
    assert.ok(String(value ?? '').length > 10, name);
    secrets.set(name, String(value));
  };
  const call = async (token: string, path: string, body: object) => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    const text = await answer.text();
    answers.push(text);
    return text;
  };

  const method = 'client_secret_post';
  const registered = await oauth.register({
    ...{ client_name: 'Spec client', redirect_uris: [CALLBACK], token_endpoint_auth_method: method },
    grant_types: ['authorization_code', 'refresh_token'],
  });
  const { client_id: clientId, client_secret: secret } = registered.body;
  keep('the secret of the client', secret);
  const proof = newProof();
  keep('the verifier', proof.verifier);
  const browser = new ScriptedBrowser(url);
  await browser.open(await oauth.authorizationUrl(String(clientId), proof));
  await browser.press('Sign in', { username: 'ada', password: PASSWORD });
  for (const { name, value } of browser.cookies) if (name.includes('sign_in')) keep('the sign-in', value);
  const code = ((await browser.press('Allow')) as URL).searchParams.get('code') ?? '';
  keep('the code', code);
  const client = { client_id: String(clientId), client_secret: String(secret) };
  const redeem = { ...client, code, code_verifier: proof.verifier, redirect_uri: CALLBACK };
  const { body: first } = await oauth.token({ grant_type: 'authorization_code', ...redeem });
  keep('the first refresh token', first.refresh_token);
  const again = { ...client, grant_type: 'refresh_token', refresh_token: String(first.refresh_token) };
  const { body: next } = await oauth.token(again);
  keep('the second refresh token', next.refresh_token);
  for (const [name, token] of Object.entries({ first: first.access_token, second: next.access_token })) {
    keep(`the claims of the ${name} access token`, String(token).split('.')[1]);
    keep(`the signature of the ${name} access token`, String(token).split('.')[2]);
  }
  const token = String(next.access_token);

  const refused = await call(token, '/mcp/notes/tools/call', { name: 'whoami', arguments: {} });
  assert.match(refused, 'CONNECTION_REQUIRED');
  const [visit = ''] = /http[^"\\ ]+\/connections\/[\w-]+/.exec(refused) ?? [];
  answers.pop();
  await browser.open(visit);
  const there = (await browser.press(`Continue to ${new URL(backend.url).host}`)) as URL;
  keep('the state at the server', there.searchParams.get('state'));
  const back = await fetch(there, { redirect: 'manual' });
  const answer = new URL(back.headers.get('location') ?? '');
  keep('the code of the server', answer.searchParams.get('code'));
  await browser.open(answer);
  assert.match(await call(token, '/mcp/notes/tools/call', { name: 'whoami', arguments: {} }), 'someone');
  backend.expireTokens();
  assert.match(await call(token, '/mcp/notes/tools/call', { name: 'whoami', arguments: {} }), 'someone');
  const environment = await call(token, '/mcp/near/tools/call', { name: 'env', arguments: {} });
  assert.match(environment, 'PATH');
  for (const { token: used } of backend.seen) keep(`a token at the server, ${used.slice(0, 4)}`, used);
  assert.ok(backend.refreshes > 0);
  backend.endGrants();
  assert.match(
    await call(token, '/mcp/notes/tools/call', { name: 'whoami', arguments: {} }),
    'CONNECTION_REQUIRED',
  );
  answers.pop();
  // Refusals: a code and a refresh token that are over, a broken token, and one of a grant that has ended.
  answers.push(JSON.stringify(await oauth.token({ grant_type: 'authorization_code', ...redeem })));
  answers.push(JSON.stringify(await oauth.token(again)));
  await call(`${token}x`, '/mcp/near/tools/list', {});
  await call(token, '/mcp/near/tools/call', { name: 'env', arguments: {} });

  const paths = ['/gateway/audit?limit=200', '/gateway/connections', '/auth/grants', '/auth/clients'];
  const shown = await Promise.all([...paths, '/stats'].map((path) => admin(`GET ${path}`)));
  const admins = await tokenOf(url, 'admin', PASSWORD);
  const [events = '', metrics = ''] = await Promise.all(
    ['/events?follow=false', '/metrics'].map(async (path) =>
      (await fetch(url + path, { headers: admins })).text(),
    ),
  );
  assert.match(events, 'event: instance.', events);
  const children = canFindProcesses
    ? program
        .descendants()
        .flatMap((pid) => [readProcessFile(pid, 'environ'), readProcessFile(pid, 'cmdline')])
    : [];
  program.signal('SIGTERM');
  await program.end();
  assert.ok(collector.spans().length > 0);
  const seen: Readonly<Record<string, string>> = {
    log: program.out + program.err,
    answers: answers.join('\n'),
    'what admins see': JSON.stringify(shown.map(({ body }) => body)),
    ...{ events, metrics },
    traces: collector.requests.map(({ body }) => String(body)).join('\n'),
    children: children.join('\n'),
  };
  for (const [place, text] of Object.entries(seen))
    for (const [name, value] of secrets) assert.not.ok(text.includes(value), `${name} in: ${place}`);
  assert.match(seen.log ?? '', '/oauth/token');
  assert.match(seen['what admins see'] ?? '', 'Spec client');
});

test.run();

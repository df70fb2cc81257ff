// Servers whose certificates take OpenSSL long to check: callers without an account name them as clients, and they
// are registered. Other callers are served meanwhile.

import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { createServer, type Server } from 'node:tls';
import * as assert from 'uvu/assert';
import { newProof } from '../../helpers/browsers/scripted-browser.ts';
import { caller, repeatRequests } from '../../helpers/clients/caller.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { type OAuthHarness, startWithSignIn } from '../../helpers/identity/oauth-gateway.ts';
import { hasOpenssl, makeCostlyChain } from '../../helpers/network/certificates.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('certificates that take long to check', { timeoutMs: 120_000 });
const openssl = test.needs(hasOpenssl(), 'no openssl here');
const folder = folderOfAll(test);
const servers: Server[] = [];
let gateway: OAuthHarness;
test.before(async () => {
  if (!hasOpenssl()) return;
  makeCostlyChain(folder(), 60); // 27 kB
  const pair = { cert: readFileSync(folder('costly.crt')), key: readFileSync(folder('costly.key')) };
  for (let made = 0; made < 4; made += 1) {
    const server = createServer(pair).on('tlsClientError', () => {});
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    servers.push(server);
  }
  gateway = await startWithSignIn({ env: { GATEWAY_AUTH_CLIENT_NETWORKS: '127.0.0.0/8' } });
});
test.after(async () => {
  for (const server of servers) server.close();
  await gateway?.remove();
});

openssl('40 documents of clients at such servers do not stop the gateway', async () => {
  const { oauth, url } = gateway;
  const urls = await Promise.all(
    Array.from({ length: 40 }, (_, at) => {
      const { port } = Object(servers[at % servers.length]?.address());
      const redirect = { redirect_uri: 'http://localhost:53999/callback' };
      return oauth.authorizationUrl(`https://localhost:${port}/${at}.json`, newProof(), redirect);
    }),
  );
  const watching = repeatRequests([() => caller(url)('GET /livez')]);
  const statuses = await Promise.all(urls.map(({ href }, at) => statusOf(href, `127.0.1.${1 + (at % 4)}`)));
  const answers = await watching.stop();
  const slowestMs = Math.max(...answers.map(({ tookMs }) => tookMs));
  process.stdout.write(`${JSON.stringify({ slowestMs, statuses: [...new Set(statuses)] })}\n`);
  assert.ok(slowestMs < 3_000, `/livez took ${slowestMs} ms`);
});

openssl('neither do 20 backends at such servers', async () => {
  const { admin, url } = gateway;
  const instances = Array.from({ length: 20 }, (_, at) => {
    const { port } = Object(servers[at % servers.length]?.address());
    return { id: `costly-${at}`, endpoint: `https://localhost:${port}/${at}` };
  });
  const watching = repeatRequests([() => caller(url)('GET /livez')]);
  await Promise.all(
    instances.map(async (instance) => {
      const body = { template_name: 'costly', instance };
      assert.is((await admin('POST /gateway/register?wait=10', body)).status, 201);
    }),
  );
  const answers = await watching.stop();
  const slowestMs = Math.max(...answers.map(({ tookMs }) => tookMs));
  process.stdout.write(`${JSON.stringify({ slowestMs })}\n`);
  assert.ok(slowestMs < 3_000, `/livez took ${slowestMs} ms`);
});

test.run();

function statusOf(url: string, localAddress: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false, localAddress }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    }).on('error', reject);
  });
}

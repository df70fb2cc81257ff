// Which hosts and origins are allowed: by a gateway on loopback, behind a proxy, and by one that others can reach.

import * as assert from 'uvu/assert';
import { createProxies } from '../../../src/http/callers/proxies.ts';
import { hostOriginCheck } from '../../../src/http/middleware/host-origin-check.ts';
import { json } from '../../../src/http/replies/reply.ts';
import { respond } from '../../../src/http/replies/respond.ts';
import { head, sendRaw } from '../../helpers/clients/raw-http.ts';
import { startMiddlewares } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the check of host and origin');

function serve(options: Partial<Parameters<typeof hostOriginCheck>[0]>, trusted: readonly string[] = []) {
  const check = hostOriginCheck({
    ...{ allowedHosts: [], allowedOrigins: [], isPublic: false, corsOrigins: [] },
    ...{ proxies: createProxies(trusted), ...options },
  });
  return startMiddlewares(check, (context) => respond(context, json(200, {})));
}

const APPS = {
  'on loopback': serve({
    allowedHosts: ['Gateway.example', 'other.example:8080'],
    allowedOrigins: ['https://console.example', '*', 'null'],
    corsOrigins: ['*', 'https://cors.example'],
  }),
  'behind a proxy': serve({ allowedHosts: ['public.example'] }, ['127.0.0.1/32']),
  'public, CORS for all': serve({ isPublic: true, corsOrigins: ['*'] }),
  'public, CORS for some': serve({
    ...{ isPublic: true, corsOrigins: ['https://Console.example', 'null'] },
    allowedOrigins: ['https://other.example:8443'],
  }),
  public: serve({ isPublic: true }),
} as const;
test.after(async () => {
  for (const app of Object.values(APPS)) (await app).close();
});

/** Sends one request by hand; `line` may be any method and target. */
async function ask(app: keyof typeof APPS, headers: Record<string, string>, line = 'GET /') {
  const { port } = await APPS[app];
  const text = await sendRaw(port, head(line, { Connection: 'close', ...headers }));
  return { status: Number(text.slice(9, 12)), text };
}

/** Hosts by the status that they are answered with. */
const LOCAL_HOSTS = {
  200: [
    ...['localhost', 'LocalHost:1', '127.0.0.1', '127.0.0.1:8080', '[::1]', '[::1]:8080'],
    ...['gateway.example', 'GATEWAY.EXAMPLE:99', 'other.example:8080'],
  ],
  403: [
    ...['', 'evil.example', 'localhost.evil.example', 'localhost.', 'evil.example:127.0.0.1'],
    ...['user@localhost', 'localhost:', 'localhost:8080:80', 'localhost, evil.example', '127.0.0.2'],
    ...['127.1', '0.0.0.0', '::1', 'other.example', 'other.example:80801', 'gateway.example.'],
  ],
};
for (const [wanted, hosts] of Object.entries(LOCAL_HOSTS))
  for (const host of hosts)
    test(`on loopback: answers the Host "${host}" with ${wanted}`, async () => {
      const { status, text } = await ask('on loopback', { Host: host });
      assert.is(status, Number(wanted));
      if (status === 403) assert.match(text, /"error_code":"ORIGIN_NOT_ALLOWED"/);
    });

test('refuses a request without a Host, unless it is public', async () => {
  for (const [app, status] of [
    ['on loopback', 403],
    ['public, CORS for all', 200],
  ] as const) {
    const answer = await sendRaw((await APPS[app]).port, 'GET / HTTP/1.0\r\n\r\n');
    assert.is(Number(answer.slice(9, 12)), status);
  }
});

test('checks the host of an absolute request target by the same rules', async () => {
  const local = 'on loopback';
  assert.is((await ask(local, {}, 'GET http://localhost:8080/')).status, 200);
  assert.is((await ask(local, {}, 'GET http://evil.example/')).status, 403);
  assert.is((await ask(local, { Host: 'evil.example' }, 'GET http://localhost/')).status, 403);
  assert.is((await ask('public', { Host: 'gateway.example' }, 'GET http://evil.example/')).status, 200);
});

/** Allowed origins, and the answered Access-Control-Allow-Origin; undefined: none, as for the own origin. */
const ORIGINS: readonly (readonly [
  app: keyof typeof APPS,
  host: string,
  origin: string,
  allowed?: string,
])[] = [
  ['on loopback', 'localhost:8080', 'http://LOCALHOST:8080'],
  ['on loopback', 'localhost:8080', 'https://console.example', 'https://console.example'],
  ['on loopback', 'localhost:8080', 'https://cors.example', 'https://cors.example'],
  ['public, CORS for all', 'gateway.example', 'https://anybody.example', '*'],
  ['public, CORS for all', 'gateway.example', 'null', '*'],
  ['public, CORS for all', 'gateway.example', 'http://gateway.example', '*'],
  ['public, CORS for some', 'gateway.example', 'https://console.example', 'https://console.example'],
  ['public, CORS for some', 'gateway.example', 'https://CONSOLE.example', 'https://CONSOLE.example'],
  ['public, CORS for some', 'gateway.example', 'https://other.example:8443', 'https://other.example:8443'],
  ['public, CORS for some', 'gateway.example', 'http://gateway.example'],
  ['public', 'gateway.example', 'http://gateway.example'],
];
for (const [app, host, origin, allowed] of ORIGINS)
  test(`${app}: allows the Origin ${origin}, never with credentials`, async () => {
    const { status, text } = await ask(app, { Host: host, Origin: origin });
    assert.is(status, 200);
    assert.is(/^Access-Control-Allow-Origin: (.*)\r$/m.exec(text)?.[1], allowed);
    assert.is(/^Vary: Origin\r$/m.test(text), allowed !== undefined && allowed !== '*');
    assert.not.match(text, /Allow-Credentials/i);
    const exposed = /^Access-Control-Expose-Headers: (.*)\r$/m.exec(text)?.[1];
    if (allowed === undefined) assert.not.match(text, /access-control/i);
    else assert.match(String(exposed), /X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset/);
  });

const REFUSED: Readonly<Partial<Record<keyof typeof APPS, readonly string[]>>> = {
  'on loopback': [
    ...['http://evil.example', 'http://localhost', 'https://localhost:8080', 'http://127.0.0.1:8080'],
    ...['null', '*', '', 'https://console.example.evil.example', 'http://console.example'],
    'https://any.cors.example',
  ],
  'public, CORS for some': [
    ...['https://anybody.example', 'http://console.example', 'https://other.example'],
    ...['https://gateway.example', 'null', ''],
  ],
  public: ['https://anybody.example', '*'],
};
for (const [app, origins] of Object.entries(REFUSED) as [keyof typeof APPS, readonly string[]][])
  for (const origin of origins)
    test(`${app}: refuses the Origin "${origin}", and its preflight`, async () => {
      const host = app === 'on loopback' ? 'localhost:8080' : 'gateway.example';
      const headers = { Host: host, Origin: origin };
      const { status, text } = await ask(app, headers);
      assert.is(status, 403);
      assert.match(text, /"error_code":"ORIGIN_NOT_ALLOWED"/);
      assert.not.match(text, /access-control/i);
      const preflight = { ...headers, 'Access-Control-Request-Method': 'POST' };
      assert.is((await ask(app, preflight, 'OPTIONS /servers/one')).status, 403);
    });

test('allows the headers of MCP, of tools and of credentials in the preflight of an allowed origin', async () => {
  for (const [app, origin, shown] of [
    ['on loopback', 'https://console.example', 'https://console.example'],
    ['public, CORS for all', 'https://anybody.example', '*'],
  ] as const) {
    const { status, text } = await ask(
      app,
      {
        Origin: origin,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'mcp-param-region, cookie, mcp-param-, Mcp-Param-Id',
      },
      'OPTIONS /mcp/demo',
    );
    assert.is(status, 204);
    assert.is(/^Access-Control-Allow-Origin: (.*)\r$/m.exec(text)?.[1], shown);
    assert.match(text, /^Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE\r$/m);
    const [, allowed = ''] = /^Access-Control-Allow-Headers: (.*)\r$/m.exec(text) ?? [];
    for (const name of ['Content-Type', 'Authorization', 'X-API-Key']) assert.match(allowed, name);
    assert.equal(allowed.split(', ').slice(5), [
      ...['Last-Event-ID', 'Mcp-Session-Id', 'MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name'],
      ...['mcp-param-region', 'Mcp-Param-Id'],
    ]);
    assert.match(text, /^Access-Control-Expose-Headers: .*Mcp-Session-Id\r$/m);
  }
});

test('reads X-Forwarded-Host and X-Forwarded-Proto only from a trusted proxy', async () => {
  const found = (await ask('on loopback', { Host: 'evil.example', 'X-Forwarded-Host': 'localhost' })).status;
  assert.is(found, 403);
  const through = (forwarded: string, scheme: string) =>
    ask('behind a proxy', {
      ...{ Host: '10.1.2.3:8080', 'X-Forwarded-Host': forwarded, 'X-Forwarded-Proto': 'https' },
      Origin: `${scheme}://public.example`,
    });
  assert.is((await through('public.example', 'https')).status, 200);
  assert.is((await through('public.example:443', 'https')).status, 200);
  assert.is((await through('public.example:80', 'https')).status, 403);
  assert.is((await through('public.example', 'http')).status, 403);
  assert.is((await through('evil.example', 'https')).status, 403);
});

test.run();

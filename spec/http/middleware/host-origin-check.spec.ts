import * as assert from 'uvu/assert';
import { hostOriginCheck } from '../../../src/http/middleware/host-origin-check.ts';
import { createProxies } from '../../../src/http/proxies.ts';
import { json } from '../../../src/http/reply.ts';
import { respond } from '../../../src/http/respond.ts';
import { startMiddlewares } from '../../helpers/http-middlewares.ts';
import { head, sendRaw } from '../../helpers/http-raw.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the guard');
const started = startMiddlewares(
  hostOriginCheck({
    allowedHosts: ['Gateway.example', 'other.example:8080'],
    allowedOrigins: ['https://console.example', '*', 'null'],
    isPublic: false,
    corsOrigins: ['*', 'https://cors.example'],
    proxies: createProxies([]),
  }),
  (context) => respond(context, json(200, {})),
);
const startedBehindProxy = startMiddlewares(
  hostOriginCheck({
    ...{ allowedHosts: ['public.example'], allowedOrigins: [], isPublic: false, corsOrigins: [] },
    proxies: createProxies(['127.0.0.1']),
  }),
  (context) => respond(context, json(200, {})),
);
test.after(async () => {
  (await started).close();
  (await startedBehindProxy).close();
});

/** Sends one request by hand; `line` may be any method and target. */
async function ask(headers: Record<string, string>, line = 'GET /', app = started) {
  const text = await sendRaw((await app).port, head(line, { Connection: 'close', ...headers }));
  return { status: Number(text.slice(9, 12)), text };
}

for (const host of [
  'localhost',
  'LocalHost:1',
  '127.0.0.1',
  '127.0.0.1:8080',
  '[::1]',
  '[::1]:8080',
  'gateway.example',
  'GATEWAY.EXAMPLE:99',
  'other.example:8080',
]) {
  test(`lets the Host ${host} in`, async () => assert.is((await ask({ Host: host })).status, 200));
}

for (const host of [
  '',
  'evil.example',
  'localhost.evil.example',
  'localhost.',
  'evil.example:127.0.0.1',
  'user@localhost',
  'localhost:',
  'localhost:8080:80',
  'localhost, evil.example',
  '127.0.0.2',
  '127.1',
  '0.0.0.0',
  '::1',
  'other.example',
  'other.example:80801',
  'gateway.example.',
]) {
  test(`refuses the Host "${host}"`, async () => {
    const { status, text } = await ask({ Host: host });
    assert.is(status, 403);
    assert.match(text, /"error_code":"ORIGIN_NOT_ALLOWED"/);
  });
}

test('refuses a request without a Host', async () => {
  assert.match(await sendRaw((await started).port, 'GET / HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 403 /);
});

test('holds a second host in the request target to the same rules', async () => {
  assert.is((await ask({}, 'GET http://localhost:8080/')).status, 200);
  assert.is((await ask({}, 'GET http://evil.example/')).status, 403);
  assert.is((await ask({ Host: 'evil.example' }, 'GET http://localhost/')).status, 403);
});

test('lets the same origin in, without CORS headers', async () => {
  const { status, text } = await ask({ Host: 'localhost:8080', Origin: 'http://LOCALHOST:8080' });
  assert.is(status, 200);
  assert.not.match(text, /access-control/i);
});

for (const origin of [
  'http://evil.example',
  'http://localhost',
  'https://localhost:8080',
  'http://127.0.0.1:8080',
  'null',
  '*',
  '',
  'https://console.example.evil.example',
  'http://console.example',
  'https://cors.example',
]) {
  test(`refuses the Origin "${origin}"`, async () => {
    const { status, text } = await ask({ Host: 'localhost:8080', Origin: origin });
    assert.is(status, 403);
    assert.not.match(text, /access-control/i);
  });
}

test('lets an allowed origin read the answer, never with credentials', async () => {
  const { status, text } = await ask({ Origin: 'https://console.example' });
  assert.is(status, 200);
  assert.match(text, /^Access-Control-Allow-Origin: https:\/\/console\.example\r$/m);
  assert.match(text, /^Vary: Origin\r$/m);
  assert.not.match(text, /Allow-Credentials|Allow-Origin: \*/i);
});

test('answers the preflight of an allowed origin', async () => {
  const { status, text } = await ask(
    { Origin: 'https://console.example', 'Access-Control-Request-Method': 'POST' },
    'OPTIONS /mcp/demo/tools/call',
  );
  assert.is(status, 204);
  assert.match(text, /^Access-Control-Allow-Methods: GET, HEAD, POST, PATCH, DELETE\r$/m);
  assert.match(text, /^Access-Control-Allow-Headers: .*Content-Type/m);
});

test('lets a page send what MCP asks for, with the headers that a tool names, and read its session', async () => {
  const { text } = await ask(
    {
      Origin: 'https://console.example',
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'mcp-param-region, cookie, mcp-param-, Mcp-Param-Id',
    },
    'OPTIONS /mcp/demo',
  );
  const [, allowed = ''] = /^Access-Control-Allow-Headers: (.*)\r$/m.exec(text) ?? [];
  assert.equal(allowed.split(', ').slice(5), [
    ...['Last-Event-ID', 'Mcp-Session-Id', 'MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name'],
    ...['mcp-param-region', 'Mcp-Param-Id'],
  ]);
  assert.match(text, /^Access-Control-Expose-Headers: .*Mcp-Session-Id\r$/m);
});

test('refuses the preflight of another origin', async () => {
  const headers = { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST' };
  assert.is((await ask(headers, 'OPTIONS /')).status, 403);
});

test('does not believe X-Forwarded-Host of just anybody', async () => {
  assert.is((await ask({ Host: 'evil.example', 'X-Forwarded-Host': 'localhost' })).status, 403);
});

test('takes host and scheme from a trusted proxy', async () => {
  const headers = {
    Host: '10.1.2.3:8080',
    'X-Forwarded-Host': 'public.example',
    'X-Forwarded-Proto': 'https',
  };
  const origin = { Origin: 'https://public.example' };
  assert.is((await ask({ ...headers, ...origin }, 'GET /', startedBehindProxy)).status, 200);
  assert.is(
    (await ask({ ...headers, Origin: 'http://public.example' }, 'GET /', startedBehindProxy)).status,
    403,
  );
  const evil = { ...headers, 'X-Forwarded-Host': 'evil.example' };
  assert.is((await ask(evil, 'GET /', startedBehindProxy)).status, 403);
});

// --- a gateway with authentication, on an address that others can reach -------------------------------------------

const publicApp = (corsOrigins: readonly string[], allowedOrigins: readonly string[] = []) =>
  startMiddlewares(
    hostOriginCheck({
      ...{ allowedHosts: [], allowedOrigins, isPublic: true, corsOrigins },
      proxies: createProxies([]),
    }),
    (context) => respond(context, json(200, {})),
  );
const cors = suite('the guard of a public gateway');
const forAll = publicApp(['*']);
const forSome = publicApp(['https://Console.example', 'null'], ['https://other.example:8443']);
const forNone = publicApp([]);
cors.after(async () => {
  for (const app of [forAll, forSome, forNone]) (await app).close();
});

cors('takes any Host, and none', async () => {
  assert.is((await ask({ Host: 'gateway.example' }, 'GET /', forAll)).status, 200);
  assert.is((await ask({ Host: 'gateway.example' }, 'GET http://evil.example/', forNone)).status, 200);
  assert.match(await sendRaw((await forAll).port, 'GET / HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /);
});

for (const [who, app, origin, allowed] of [
  ['for all', forAll, 'https://anybody.example', '*'],
  ['for all', forAll, 'null', '*'],
  ['for all', forAll, 'http://gateway.example', '*'],
  ['for some', forSome, 'https://console.example', 'https://console.example'],
  ['for some', forSome, 'https://CONSOLE.example', 'https://CONSOLE.example'],
  ['for some', forSome, 'https://other.example:8443', 'https://other.example:8443'],
  ['for some', forSome, 'http://gateway.example', undefined],
  ['for none', forNone, 'http://gateway.example', undefined],
] as const) {
  cors(`${who} lets the Origin ${origin} in`, async () => {
    const { status, text } = await ask({ Host: 'gateway.example', Origin: origin }, 'GET /', app);
    assert.is(status, 200);
    assert.is(/^Access-Control-Allow-Origin: (.*)\r$/m.exec(text)?.[1], allowed);
    assert.is(/^Vary: Origin\r$/m.test(text), allowed !== undefined && allowed !== '*');
    assert.not.match(text, /Allow-Credentials/i);
    const exposed = /^Access-Control-Expose-Headers: (.*)\r$/m.exec(text)?.[1];
    if (allowed === undefined) assert.is(exposed, undefined);
    else assert.match(String(exposed), /X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset/);
  });
}

for (const [who, app, origin] of [
  ['for some', forSome, 'https://anybody.example'],
  ['for some', forSome, 'http://console.example'],
  ['for some', forSome, 'https://other.example'],
  ['for some', forSome, 'https://gateway.example'],
  ['for some', forSome, 'null'],
  ['for some', forSome, ''],
  ['for none', forNone, 'https://anybody.example'],
  ['for none', forNone, '*'],
] as const) {
  cors(`${who} refuses the Origin "${origin}"`, async () => {
    const { status, text } = await ask({ Host: 'gateway.example', Origin: origin }, 'GET /', app);
    assert.is(status, 403);
    assert.match(text, /"error_code":"ORIGIN_NOT_ALLOWED"/);
    assert.not.match(text, /access-control/i);
  });
}

cors('answers preflights, with the headers of both kinds of credentials', async () => {
  const headers = { Origin: 'https://anybody.example', 'Access-Control-Request-Method': 'DELETE' };
  const { status, text } = await ask(headers, 'OPTIONS /servers/one', forAll);
  assert.is(status, 204);
  assert.match(text, /^Access-Control-Allow-Origin: \*\r$/m);
  assert.match(text, /^Access-Control-Allow-Headers: .*Authorization.*X-API-Key/m);
  assert.is((await ask(headers, 'OPTIONS /servers/one', forSome)).status, 403);
});

test.run();
cors.run();

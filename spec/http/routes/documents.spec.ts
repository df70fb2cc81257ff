import * as assert from 'uvu/assert';
import { REDOC_ASSETS, SWAGGER_ASSETS } from '../../../src/http/docs/assets.ts';
import { type AccountsFixture, startWithAccounts } from '../../helpers/http-accounts.ts';
import { head, sendRaw } from '../../helpers/http-raw.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of the documents');
let app: AccountsFixture;
test.before(async () => {
  app = await startWithAccounts();
});
test.after(() => app.close());

const FILES = [
  ...Object.entries(SWAGGER_ASSETS).map(([name, { type }]) => [`/docs/assets/${name}`, type] as const),
  ...Object.entries(REDOC_ASSETS).map(([name, { type }]) => [`/redoc/assets/${name}`, type] as const),
];
const PLACES = [
  ['/openapi.json', 'application/json'],
  ['/docs', 'text/html; charset=utf-8'],
  ['/redoc', 'text/html; charset=utf-8'],
  ...FILES,
] as const;

test('are open, and say what they send and how long it holds', async () => {
  for (const [path, type] of PLACES) {
    const { status, headers } = await app.ask('GET', path);
    assert.equal([status, headers.get('content-type')], [200, type], path);
    assert.is(headers.get('x-content-type-options'), 'nosniff');
    assert.is(headers.get('cache-control'), path.includes('/assets/') ? 'public, max-age=3600' : 'no-cache');
  }
});

test('answer 304 to whoever has it, and HEAD without a body', async () => {
  for (const [path] of PLACES) {
    const first = await app.ask('HEAD', path);
    const etag = first.headers.get('etag') ?? '';
    assert.is(first.text, '');
    assert.ok(Number(first.headers.get('content-length')) > 100, path);
    const again = await app.ask('GET', path, { headers: { 'if-none-match': etag } });
    assert.equal([again.status, again.text, again.headers.get('etag')], [304, '', etag], path);
  }
});

test('keep the pages out of frames and send no address along', async () => {
  for (const path of ['/docs', '/redoc']) {
    const { headers } = await app.ask('GET', path);
    assert.match(headers.get('content-security-policy') ?? '', /default-src 'none';.*frame-ancestors 'none'/);
    assert.is(headers.get('referrer-policy'), 'no-referrer');
  }
});

test('lead from the address with a slash to the one without, wherever the gateway is', async () => {
  for (const name of ['docs', 'redoc']) {
    const answer = await sendRaw(app.port, head(`GET /${name}/`, { Connection: 'close' }));
    assert.match(answer, new RegExp(`^HTTP/1.1 308 [\\s\\S]*Location: \\.\\./${name}\r\n`));
  }
});

test('have no other files', async () => {
  for (const name of [
    'package.json',
    'index.html',
    'swagger-ui.js',
    'toString',
    '__proto__',
    'a'.repeat(3_000),
  ]) {
    const { status, body } = await app.ask('GET', `/docs/assets/${name}`);
    assert.equal([status, body.error_code], [404, 'NOT_FOUND'], name.slice(0, 20));
  }
  for (const path of [
    '/docs/assets/..%2f..%2fpackage.json',
    '/docs/assets/%2e%2e%2findex.html',
    '/redoc/assets/%00',
  ]) {
    const answer = await sendRaw(app.port, head(`GET ${path}`, { Connection: 'close' }));
    assert.match(answer, /^HTTP\/1\.1 4(?:04|22) /);
  }
});

test('are guarded like everything else', async () => {
  const guarded = await sendRaw(app.port, head('GET /docs', { Host: 'evil.example', Connection: 'close' }));
  assert.match(guarded, /^HTTP\/1\.1 403 [\s\S]*ORIGIN_NOT_ALLOWED/);
});

test.run();

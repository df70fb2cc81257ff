// The files of the console over HTTP, with a built folder of the spec and with none; and `/`, which sends browsers to them.

import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import * as assert from 'uvu/assert';
import { head, sendRaw } from '../../helpers/clients/raw-http.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor, headersOf } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the console routes');

const SCRIPT = `export const rows = [${'"a row of a table", '.repeat(200)}];\n`;
const PAGE = `<!doctype html>
<html><head><link rel="icon" href="./favicon.svg"><script type="module" src="./assets/index-B1a2c3D4.js"></script></head>
<body><noscript><a href="../docs">API</a></noscript></body></html>
`;
const FILES: Readonly<Record<string, string>> = {
  'index.html': PAGE,
  'favicon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  'assets/index-B1a2c3D4.js': SCRIPT,
  'assets/index-B1a2c3D4.js.map': '{}',
  'assets/index-e5F6a7b8.css': 'body { margin: 0 }',
};

const folder = folderOfAll(test)();
test.before(async () => {
  await writeFile(join(folder, 'secret.js'), 'the secret');
  const built = join(folder, 'dist');
  await mkdir(join(built, 'assets'), { recursive: true });
  for (const [name, content] of Object.entries(FILES)) await writeFile(join(built, name), content);
  await symlink(join(folder, 'secret.js'), join(built, 'assets', 'link.js'));
});
const app = appFor(test, () => startWithAccounts({ consoleFolder: pathToFileURL(`${folder}/dist/`) }));

const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  app.ask('GET', path, { headers: { 'accept-encoding': 'identity', ...headers } });
const raw = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  sendRaw(app.port, head(`GET ${path}`, { Connection: 'close', ...headers }));

test('serve the files unchanged, and let files with a hash in their name be cached for a year', async () => {
  for (const [path, type, caching] of [
    ['favicon.svg', 'image/svg+xml', 'no-cache'],
    ['assets/index-B1a2c3D4.js', 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable'],
    ['assets/index-e5F6a7b8.css', 'text/css; charset=utf-8', 'public, max-age=31536000, immutable'],
  ] as const) {
    const { status, headers, text } = await get(`/console/${path}`);
    assert.equal([status, headers.get('content-type'), headers.get('cache-control')], [200, type, caching]);
    assert.is(text, FILES[path]);
  }
});

test('allow only scripts, styles and connections of the gateway, and no frame', async () => {
  for (const path of ['/console/', '/console/sessions', '/console/favicon.svg']) {
    const answer = await get(path);
    assert.is(
      answer.headers.get('content-security-policy'),
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src data:; " +
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    const names = ['x-content-type-options', 'referrer-policy', 'cross-origin-opener-policy'];
    assert.equal(headersOf(answer, ...names), ['nosniff', 'no-referrer', 'same-origin']);
  }
});

test('answer every other name with the page, whose links are relative to /console/', async () => {
  assert.match(await raw('/console'), /^HTTP\/1\.1 308 [\s\S]*\r\nLocation: console\/\r\n/);
  for (const path of ['/console/', '/console/sessions', '/console/index.html', '/console/x.y']) {
    const answer = await get(path);
    const [type, caching] = headersOf(answer, 'content-type', 'cache-control');
    assert.equal([answer.status, type, caching], [200, 'text/html; charset=utf-8', 'no-cache'], path);
    assert.is(answer.text, PAGE);
  }
});

test('redirect what is below a page to the page, which says when there is none', async () => {
  for (const [path, location] of [
    ['sessions/', '../sessions'],
    ['templates/weather/tools', '../../templates'],
    ['/sessions', '../'],
    ['no%20such/page', '../no%20such'],
  ])
    assert.match(await raw(`/console/${path}`), `\r\nLocation: ${location}\r\n`, path);
});

test('are compressed for browsers that accept gzip', async () => {
  const path = '/console/assets/index-B1a2c3D4.js';
  const [answer, plain] = [
    await raw(path, { 'Accept-Encoding': 'br, gzip' }),
    await raw(path, { 'Accept-Encoding': 'identity' }),
  ];
  for (const each of [answer, plain]) assert.match(each, /\r\nVary: Accept-Encoding\r\n/);
  const [top = ''] = answer.split('\r\n\r\n', 1);
  assert.match(top, /\r\nContent-Encoding: gzip\r\n/);
  assert.is(gunzipSync(Buffer.from(answer.slice(top.length + 4), 'latin1')).toString(), SCRIPT);
  assert.not.match(plain, 'Content-Encoding');
});

test('answer a missing script with 404, not with the page', async () => {
  for (const name of ['index-00000000.js', 'index-B1a2c3D4.js.map', 'link.js', '']) {
    assert.is((await get(`/console/assets/${name}`)).outcome, '404 NOT_FOUND', name);
  }
});

test('serve no file outside their folder', async () => {
  for (const path of [
    ...['/console/../secret.js', '/console/%2e%2e/secret.js', '/console/..%2fsecret.js', '/console/%00'],
    ...['/console/assets/../../secret.js', '/console//etc/passwd', '/console/..%5csecret.js'],
  ]) {
    const answer = await raw(path);
    assert.match(answer, /^HTTP\/1\.1 (?:200|308|404|422) /, path);
    assert.not.match(answer, /the secret|root:/, path);
  }
});

/** As browsers send it. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

test('are the target of the redirect of browsers from `/`, which is JSON for other clients', async () => {
  const answer = await raw('/', { Accept: BROWSER });
  assert.match(answer, /^HTTP\/1\.1 303 [\s\S]*\r\nLocation: console\/\r\n/);
  // The last one is too long to be read: a negotiation takes quadratic time.
  const long = `${BROWSER};a="${','.repeat(10_000)}"`;
  for (const accept of ['*/*', 'application/json', 'application/json, text/event-stream', long]) {
    const { status, headers, body } = await get('/', { accept });
    assert.equal([status, headers.get('vary'), headers.get('cache-control')], [200, 'Accept', 'no-store']);
    const { name, status: health, links } = body;
    assert.equal([name, health, Object(links).mcp], ['stagedoor', 'healthy', '/mcp'], accept.slice(0, 99));
  }
});

test('answer 404 with the build command until the console is built', async () => {
  const later = join(folder, 'later');
  const other = await startWithAccounts({ consoleFolder: pathToFileURL(`${later}/`) });
  try {
    for (const path of ['/console', '/console/sessions', '/console/assets/x.js']) {
      const { status, body } = await other.ask('GET', path);
      assert.equal([status, body.error_code], [404, 'NOT_FOUND']);
      assert.match(String(body.detail), 'npm run build:console');
    }
    await mkdir(later);
    await writeFile(join(later, 'index.html'), PAGE);
    assert.is((await other.ask('GET', '/console')).status, 200);
  } finally {
    await other.close();
  }
});

test.run();

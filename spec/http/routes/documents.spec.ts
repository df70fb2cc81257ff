// The API description, the two pages that show it and their files: their content, and over HTTP.

import * as assert from 'uvu/assert';
import { ASSETS, documentPage, readAsset, redocPage, swaggerPage } from '../../../src/http/docs/documents.ts';
import { head, sendRaw } from '../../helpers/clients/raw-http.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the API documents');
const app = appFor(test, () => startWithAccounts());

const FILES = Object.entries(ASSETS).flatMap(([page, assets]) =>
  Object.entries(assets).map(([name, { type }]) => [`/${page}/assets/${name}`, type] as const),
);
const PLACES = [
  ['/openapi.json', 'application/json'],
  ['/docs', 'text/html; charset=utf-8'],
  ['/redoc', 'text/html; charset=utf-8'],
  ...FILES,
] as const;

test('need no credentials, and have media type and cache time', async () => {
  for (const [path, type] of PLACES) {
    const { status, headers, text } = await app.ask('GET', path);
    assert.equal([status, headers.get('content-type')], [200, type], path);
    assert.is(headers.get('x-content-type-options'), 'nosniff');
    assert.is(headers.get('cache-control'), path.includes('/assets/') ? 'public, max-age=3600' : 'no-cache');
    assert.ok(text.length > 100, path);
  }
});

test('redirect from a path with a trailing slash by a relative location', async () => {
  for (const name of ['docs', 'redoc']) {
    const answer = await sendRaw(app.port, head(`GET /${name}/`, { Connection: 'close' }));
    assert.match(answer, new RegExp(`^HTTP/1.1 308 [\\s\\S]*Location: \\.\\./${name}\r\n`));
  }
});

test('answer 404 for unlisted files and path traversal', async () => {
  for (const name of ['package.json', 'swagger-ui.js', '__proto__', 'a'.repeat(3_000)])
    assert.is((await app.ask('GET', `/docs/assets/${name}`)).outcome, '404 NOT_FOUND', name.slice(0, 20));
  for (const path of ['docs/assets/..%2f..%2fpackage.json', 'redoc/assets/%00'])
    assert.match(
      await sendRaw(app.port, head(`GET /${path}`, { Connection: 'close' })),
      /^HTTP\/1\.1 4(?:04|22) /,
    );
});

test('are pages that load only files of the gateway, without telemetry', async () => {
  const swagger = (await app.ask('GET', '/docs')).text;
  const loaded = [...swagger.matchAll(/\s(?:src|href)="([^"]*)"/g)].map(([, url]) => url);
  const files = Object.keys(ASSETS.docs).map((name) => `docs/assets/${name}`);
  assert.equal(loaded.sort(), files.sort());
  assert.not.match(swagger, /https?:\/\/(?!www\.w3\.org)/);
  assert.match(swagger, /"url":"openapi\.json","validatorUrl":null/);
  assert.not.match(swagger, /\sstyle="|\son\w+="/);
  assert.equal(await swaggerPage(), await swaggerPage());
  const redoc = (await app.ask('GET', '/redoc')).text;
  assert.match(redoc, /<script type="module" src="redoc\/assets\/redoc\.standalone\.js">/);
  assert.match(redoc, /spec-url="openapi\.json" disable-telemetry="true"/);
  assert.not.match(redoc, /https?:/);
});

test('allow inline scripts and styles by hash, and otherwise only files of the gateway', async () => {
  // SHA-256 of nothing and of `alert(1)`, by sha256sum and base64.
  const empty = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
  const alert = "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='";
  const html = '<style></style><script src="x"></script><script>alert(1)</script>';
  const [name, policy = '', ...others] = documentPage(html).headers;
  assert.is(name, 'Content-Security-Policy');
  assert.equal(policy.split('; '), [
    ...["default-src 'none'", `script-src 'self' ${alert}`, `style-src 'self' ${empty}`],
    ...["img-src 'self' data:", 'font-src data:', "connect-src 'self'", "base-uri 'none'"],
    ...["form-action 'self'", "frame-ancestors 'none'"],
  ]);
  assert.equal(others.slice(0, 4), [
    'Referrer-Policy',
    'no-referrer',
    'Cross-Origin-Opener-Policy',
    'same-origin',
  ]);
  for (const [path, { headers }, scripts, styles] of [
    ['/docs', await swaggerPage(), /script-src 'self' 'sha256-[^ ]+';/, /style-src 'self'/],
    ['/redoc', redocPage(), /script-src 'self';/, /style-src 'self' 'sha256-[^ ]+' 'sha256-47DEQpj8[^ ]+';/],
  ] as const) {
    const sent = (await app.ask('GET', path)).headers.get('content-security-policy') ?? '';
    assert.ok(headers.includes(sent), path);
    assert.match(sent, scripts);
    assert.match(sent, styles);
    assert.not.match(sent, 'unsafe');
  }
});

test('have files that are all installed, with all edits', async () => {
  for (const [name, asset] of Object.entries({ ...ASSETS.docs, ...ASSETS.redoc })) {
    const text = String(await readAsset(asset));
    assert.ok(text.length > 500, name);
    const unedited = String(await readAsset({ ...asset, edits: [] }));
    for (const [passage, by] of asset.edits ?? []) {
      assert.equal(
        [unedited.split(passage).length, text.includes(passage), text.includes(by)],
        [2, false, true],
      );
    }
  }
});

test.run();

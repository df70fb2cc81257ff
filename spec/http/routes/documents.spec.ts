// The API description, the two pages that show it and their files, over HTTP.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import * as assert from 'uvu/assert';
import { PAGE_ASSETS } from '../../../src/http/docs/api-pages.ts';
import { head, sendRaw } from '../../helpers/clients/raw-http.ts';
import { startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the API documents');
const app = appFor(test, () => startWithAccounts());

const FILES = Object.entries(PAGE_ASSETS).flatMap(([page, assets]) =>
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
  const files = Object.keys(PAGE_ASSETS.docs).map((name) => `docs/assets/${name}`);
  assert.equal(loaded.sort(), files.sort());
  assert.not.match(swagger, /https?:\/\/(?!www\.w3\.org)/);
  assert.match(swagger, /"url":"openapi\.json","validatorUrl":null/);
  assert.not.match(swagger, /\sstyle="|\son\w+="/);
  const redoc = (await app.ask('GET', '/redoc')).text;
  assert.match(redoc, /<script type="module" src="redoc\/assets\/redoc\.standalone\.js">/);
  assert.match(redoc, /spec-url="openapi\.json" disable-telemetry="true"/);
  assert.not.match(redoc, /https?:/);
});

test('allow inline scripts and styles by hash, and otherwise only files of the gateway', async () => {
  // SHA-256 of nothing, by sha256sum and base64: ReDoc creates an empty style element and fills it by rules.
  const empty = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
  for (const [path, scripts, furtherStyles] of [
    ['/docs', 1, []],
    ['/redoc', 0, [empty]],
  ] as const) {
    const { text, headers } = await app.ask('GET', path);
    const hashes = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, inline = '']) => hashOf(inline));
    const inlineScripts = hashes(/<script>([\s\S]*?)<\/script>/g);
    const inlineStyles = hashes(/<style>([\s\S]*?)<\/style>/g);
    assert.equal([inlineScripts.length, inlineStyles.length > 0], [scripts, true], path);
    assert.equal(headers.get('content-security-policy')?.split('; '), [
      "default-src 'none'",
      ["script-src 'self'", ...inlineScripts].join(' '),
      ["style-src 'self'", ...inlineStyles, ...furtherStyles].join(' '),
      ...["img-src 'self' data:", 'font-src data:', "connect-src 'self'", "base-uri 'none'"],
      ...["form-action 'self'", "frame-ancestors 'none'"],
    ]);
    assert.equal(
      ['referrer-policy', 'cross-origin-opener-policy', 'cross-origin-resource-policy'].map((name) =>
        headers.get(name),
      ),
      ['no-referrer', 'same-origin', 'same-origin'],
    );
  }
});

test('have files that are all installed, with all edits', async () => {
  const { resolve } = createRequire(import.meta.url);
  for (const [page, assets] of Object.entries(PAGE_ASSETS))
    for (const [name, { module, edits = [] }] of Object.entries(assets)) {
      const { text } = await app.ask('GET', `/${page}/assets/${name}`);
      const installed = await readFile(resolve(module), 'utf8');
      for (const [passage, by] of edits) {
        assert.equal(
          [installed.split(passage).length, text.includes(passage), text.includes(by)],
          [2, false, true],
          passage,
        );
      }
    }
});

test.run();

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

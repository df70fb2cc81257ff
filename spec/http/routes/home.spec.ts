// What stands at `/` while the console is not built; with a console: console.spec.ts.

import * as assert from 'uvu/assert';
import { startWithAccounts } from '../../helpers/http-accounts.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the first page');
const started = startWithAccounts({ consoleFolder: new URL('none/', import.meta.url) });
test.after(async () => (await started).close());

/** As browsers send it. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

test('is a page for browsers, which runs no script, loads nothing and whose links are there', async () => {
  const { ask } = await started;
  const { status, headers, text } = await ask('GET', '/', { headers: { accept: BROWSER } });
  assert.equal([status, headers.get('content-type')], [200, 'text/html; charset=utf-8']);
  assert.match(
    headers.get('content-security-policy') ?? '',
    /^default-src 'none'; .*frame-ancestors 'none'$/,
  );
  assert.not.match(text, /<script|<style|style=|onload=/);
  assert.match(text, /It is healthy/);
  const links = [...text.matchAll(/<a href="([^"]+)"/g)].map(([, href = '']) => href);
  assert.equal(links, ['gateway/health', 'docs', 'redoc', 'openapi.json']);
  for (const link of links) assert.is((await ask('GET', `/${link}`)).status, 200, link);
});

test('is JSON for everybody else', async () => {
  const { ask } = await started;
  for (const accept of ['*/*', 'application/json', 'application/json, text/event-stream']) {
    const { status, headers, body } = await ask('GET', '/', { headers: { accept } });
    assert.equal([status, headers.get('vary'), headers.get('cache-control')], [200, 'Accept', 'no-store']);
    assert.equal([body.name, body.status, Object(body.links).mcp], ['stagedoor', 'healthy', '/mcp'], accept);
  }
});

test.run();

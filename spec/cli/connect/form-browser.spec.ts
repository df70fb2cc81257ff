// The browser for sign-in pages: which form it sends, and pages of a program that is no gateway.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as assert from 'uvu/assert';
import { FormBrowser } from '../../../src/cli/connect/form-browser.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { rejects } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('browser for forms');

async function withPage(page: string, run: (browser: FormBrowser, sent: string[]) => Promise<void>) {
  const sent: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      if (request.method === 'POST') sent.push(`${request.url} ${body}`);
      response.end(page);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const browser = new FormBrowser(origin, 10_000);
  await browser.open(new URL(origin));
  await run(browser, sent).finally(() => server.close().closeAllConnections());
}

test('sends the form with the text, and its hidden fields', () => {
  const field = (name: string) => `<input type="hidden" name="${name}" value="1">`;
  const page = `<form method="post" action="/a">${field('a')}</form> <form action="/b" method="post">${field('b')}<input name="code"></form>`;
  return withPage(page, async (browser, sent) => {
    await browser.send('name="code"', { code: 'x' });
    assert.equal(sent, ['/b b=1&code=x']);
    await rejects(async () => browser.send('name="other"', {}), CommandFailure, /the page has no such form/);
  });
});

test('fails in a line for a page that leads to no address, or has no end', async () => {
  await withPage('<form action="//[">code</form>', async (browser) => {
    await rejects(
      async () => browser.send('code', {}),
      CommandFailure,
      /leads to "\/\/\[", which is not an address$/,
    );
  });
  const server = createServer((request, response) => {
    if (request.url === '/moved') response.writeHead(302, { location: '//[' }).end();
    else response.write('<', () => response.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const browser = new FormBrowser(origin, 10_000);
  await rejects(browser.open(new URL(`${origin}/moved`)), CommandFailure, /\/moved leads to /);
  await rejects(browser.open(new URL(`${origin}/broken`)), CommandFailure, /\/broken did not answer$/);
  server.close().closeAllConnections();
});

test('reads a page of unfinished forms at once', () =>
  withPage('<form action="" '.repeat(2_000) + '>'.repeat(30_000), async (browser) => {
    const startMs = performance.now();
    await rejects(async () => browser.send('name="code"', {}), CommandFailure, /the page has no such form/);
    assert.ok(performance.now() - startMs < 2_000);
  }));

test.run();

// Results that are too long for a page: the console shows a part of them and says how much is left out.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { type Browser, launchBrowser, type WatchedPage } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE } from '../../helpers/browsers/console.ts';
import { type McpHarness, register, startHarness } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('long results in the console', { timeoutMs: 120_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

const LINES = 'a line\n'.repeat(500_000);
const PARTS = Array.from({ length: 20_000 }, (_, index) => ({ type: 'text', text: `part ${index}` }));
/** A part may not contain another one, but a server may send it. */
const NESTED = Array.from({ length: 2_000 }).reduce<object>(
  (inner) => ({ type: 'resource', resource: inner }),
  { type: 'text', text: 'innermost' },
);
/** `String` throws for it. */
const NO_TEXT = { toString: 1, valueOf: 1 };
const WITHOUT_TEXT = { default: NO_TEXT, examples: [NO_TEXT], title: NO_TEXT, pattern: '(', maxLength: -1 };
/** The fields of a tool besides its name. */
const ODD = {
  title: NO_TEXT,
  description: NO_TEXT,
  inputSchema: {
    type: 'object',
    properties: {
      text: { type: 'string', ...WITHOUT_TEXT },
      number: { type: 'number', ...WITHOUT_TEXT },
      list: { type: 'array', items: { type: 'string' }, ...WITHOUT_TEXT },
      reference: { $ref: '#/%' },
    },
  },
  annotations: { title: NO_TEXT },
};
const HTML = '<img src=x onerror="window.hasRun = true">';
const CONTENT: Readonly<Record<string, readonly object[]>> = {
  lines: [{ type: 'text', text: LINES }],
  nested: [NESTED],
  parts: PARTS,
  hostile: [
    ...[
      { type: NO_TEXT },
      { type: 'image', mimeType: NO_TEXT, data: NO_TEXT },
      { type: 'audio', data: NO_TEXT },
    ],
    ...[
      { role: NO_TEXT, content: { type: 'resource_link', name: NO_TEXT } },
      { type: 'text', text: NO_TEXT },
    ],
    ...[
      { type: 'text', text: HTML },
      { type: 'resource_link', uri: 'javascript:window.hasRun = true', name: HTML },
    ],
    { type: 'image', mimeType: 'x" onerror="window.hasRun = true', data: '' },
  ],
};

let gateway: McpHarness;
let browser: Browser;
let watched: WatchedPage;
const server = createServer(async (request, response) => {
  const { id, method, params } = Object(await json(request));
  const results: Readonly<Record<string, object>> = {
    initialize: {
      ...{ protocolVersion: '2025-11-25', serverInfo: { name: 's', version: '1' } },
      capabilities: { tools: {} },
    },
    'tools/list': { tools: [null, ...Object.keys(CONTENT).map((name) => ({ name, ...ODD }))] },
    'tools/call': { content: CONTENT[params?.name] ?? [] },
  };
  if (id === undefined) response.writeHead(202).end();
  else {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));
  }
});
test.before(async () => {
  if (!canUseConsole) return;
  await once(server.listen(0, '127.0.0.1'), 'listening');
  gateway = await startHarness();
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  await register(gateway.admin, 'long', [{ id: 'one', endpoint }]);
  browser = await launchBrowser();
  watched = await browser.open();
  watched.page.setDefaultTimeout(10_000);
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
  server.close().closeAllConnections();
});

inBrowser('shows the first 100,000 characters of a text', async () => {
  const output = await resultOf('lines');
  await output.getByText('3.4M more characters', { exact: true }).first().waitFor();
  assert.is((await output.locator('.output').first().textContent())?.length, 100_002);
});

inBrowser('shows the first 200 parts', async () => {
  const output = await resultOf('parts');
  await output.getByText('19.8K more parts', { exact: true }).waitFor();
  assert.is(await output.getByText(/^part \d+$/).count(), 200);
});

inBrowser('shows of parts within parts what their kinds allow', async () => {
  const output = await resultOf('nested');
  await output.getByText('resource', { exact: true }).first().waitFor();
  assert.is(await output.getByText('innermost', { exact: true }).count(), 0);
});

inBrowser('shows what is no text as JSON, and HTML as text', async () => {
  const output = await resultOf('hostile');
  await output.getByText('{"toString":1,"valueOf":1}', { exact: true }).first().waitFor();
  await output.getByText(HTML, { exact: true }).first().waitFor();
  assert.is(await watched.page.evaluate('window.hasRun'), undefined);
  assert.equal(
    watched.complaints.filter((complaint) => complaint.startsWith('uncaught')),
    [],
  );
});

async function resultOf(tool: string) {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/playground?template=long&item=${tool}`);
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  const output = page.locator('.result');
  await output.waitFor();
  return output;
}

test.run();

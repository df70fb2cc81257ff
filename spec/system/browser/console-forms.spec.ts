// Forms of the console that it makes of JSON Schemas: what is typed is what is sent.

import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { type Browser, launchBrowser, type WatchedPage } from '../../helpers/browsers/browser.ts';
import { canUseConsole, NO_CONSOLE } from '../../helpers/browsers/console.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { type McpHarness, register, startHarness } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('forms of the console in a browser', { timeoutMs: 120_000 });
const inBrowser = test.needs(canUseConsole, NO_CONSOLE);

const INPUT_SCHEMA = `{"type":"object","properties":{
  "amount":{"type":"number","minimum":-1},
  "id":{"type":"integer","default":9007199254740995,"x-mcp-header":"Id"},
  "part":{"enum":[9007199254740997,9007199254740999]}}}`;
const config_schema = {
  type: 'object',
  properties: {
    token: { type: 'string', sensitive: true, default: 'hunter2', header_mapping: 'X-Token' },
    team: { type: 'string', header_mapping: 'X-Team' },
  },
  required: ['token', 'team'],
};
const folder = folderOfAll(test);
/** The arguments of the last call, as they were written. */
let called = '';
let gateway: McpHarness;
let browser: Browser;
let watched: WatchedPage;
const server = createServer(async (request, response) => {
  const body = await text(request);
  const { id, method } = body === '' ? {} : JSON.parse(body);
  const results: Readonly<Record<string, string>> = {
    initialize: `{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{}}}`,
    'tools/list': `{"tools":[{"name":"count","inputSchema":${INPUT_SCHEMA}}]}`,
    'tools/call': '{"content":[],"structuredContent":{"most":-9007199254740997}}',
  };
  if (method === 'tools/call') called = /"arguments":\s*(\{[^}]*\})/.exec(body)?.[1] ?? body;
  if (id === undefined) response.writeHead(202).end();
  else {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${results[method] ?? '{}'}}`);
  }
});
test.before(async () => {
  if (!canUseConsole) return;
  await once(server.listen(0, '127.0.0.1'), 'listening');
  define('secret', config_schema);
  const isFast = { type: 'boolean', header_mapping: 'X-Fast' };
  define('plain', { type: 'object', properties: { isFast }, required: ['isFast'] });
  gateway = await startHarness({ env: { GATEWAY_TEMPLATES_DIR: folder() } });
  await register(gateway.admin, 'numbers', [{ id: 'one', endpoint: endpoint() }]);
  browser = await launchBrowser();
  watched = await browser.open();
  watched.page.setDefaultTimeout(10_000);
});
test.after(async () => {
  await browser?.close();
  await gateway?.remove();
  server.close().closeAllConnections();
});

inBrowser('leave a secret default to the gateway, also one that is required', async () => {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/register?template=secret`);
  await page.getByLabel(/^team/).fill('search');
  const registered = page.waitForRequest((request) => request.method() === 'POST');
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  assert.equal((await registered).postDataJSON(), { template_name: 'secret', config: { team: 'search' } });
});

inBrowser('send what they show, also when nothing is entered', async () => {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/register?template=plain`);
  await page.getByLabel('isFast').waitFor();
  const registered = page.waitForRequest((request) => request.method() === 'POST');
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  assert.equal((await registered).postDataJSON(), { template_name: 'plain', config: { isFast: false } });
});

inBrowser('send a number as it is typed, digit by digit', async () => {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/playground?template=numbers&item=count`);
  const field = page.getByLabel(/^amount/);
  await page.getByLabel(/^id/).fill('1');
  for (const [typed, sent] of [
    ['-0.5', '-0.5'],
    ['1.05', '1.05'],
    ['100.001', '100.001'],
    ['1e-7', '1e-7'],
    ['-0', '0'],
  ] as const) {
    await field.clear();
    await field.pressSequentially(typed);
    assert.is(await field.inputValue(), typed);
    assert.equal(await argumentsOfCall(), `{"id":1,"amount":${sent}}`);
  }
});

inBrowser('send and show all digits of integers beyond 2^53', async () => {
  const { page } = watched;
  await page.goto(`${gateway.url}/console/playground?template=numbers&item=count`);
  const id = page.getByLabel(/^id/);
  assert.is(await id.inputValue(), '9007199254740995');
  await id.fill('9007199254740993');
  assert.is(await id.inputValue(), '9007199254740993');
  const request = page.waitForRequest((each) => each.method() === 'POST');
  assert.equal(await argumentsOfCall(), '{"id":9007199254740993}');
  assert.is((await request).headers()['mcp-param-id'], '9007199254740993');
  await page.getByText('"most": -9007199254740997').first().waitFor({ state: 'attached' });
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  const written = page.getByLabel('Arguments as JSON');
  assert.match(await written.inputValue(), '"id": 9007199254740993');
  await written.fill('{"id":123456789012345678901,"part":9007199254740999}');
  assert.equal(await argumentsOfCall(), '{"id":123456789012345678901,"part":9007199254740999}');
  await page.getByRole('button', { name: 'Form', exact: true }).click();
  assert.is(await id.inputValue(), '123456789012345678901');
  assert.is(await page.getByLabel(/^part/).locator('option:checked').textContent(), '9007199254740999');
});

/** Calls the tool; the arguments as they arrive at its server. */
async function argumentsOfCall(): Promise<string> {
  const { page } = watched;
  called = '';
  const answered = page.waitForResponse((response) => response.request().method() === 'POST');
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await (await answered).finished();
  return called;
}

/** Writes the definition of a template into the folder of the gateway. */
function define(name: string, schema: object): void {
  const definition = { name, description: 'd', version: '1.0.0', transport: 'http', endpoint: endpoint() };
  mkdirSync(folder(name));
  writeFileSync(folder(name, 'template.json'), JSON.stringify({ ...definition, config_schema: schema }));
}

function endpoint(): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

test.run();

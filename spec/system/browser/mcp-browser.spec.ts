// An MCP client in a web page, in a real Chromium: the official client, served from another origin, uses a public gateway. A
// gateway on loopback refuses pages of other origins.

import * as assert from 'uvu/assert';
import type { EverythingHttp } from '../../fixtures/everything/http-face.ts';
import { everythingProgram, startEverything } from '../../fixtures/everything-server.ts';
import { type Browser, chromiumPath, launchBrowser, NO_CHROMIUM } from '../../helpers/browser.ts';
import { type ModuleServer, serveModules } from '../../helpers/browser-modules.ts';
import { newKey } from '../../helpers/caller.ts';
import { type McpHarness, register, startGuarded, startHarness } from '../../helpers/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: MCP in a browser', { timeoutMs: 120_000 });
const inBrowser = test.needs(chromiumPath, NO_CHROMIUM);

const SIMPLE = 'This is a simple text response for testing.';

/** The input of the page. Input and result are passed as JSON. */
interface Visit {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly mode: 'legacy' | 'auto' | { readonly pin: '2026-07-28' };
}

let browser: Browser;
let modules: ModuleServer;
let backend: EverythingHttp;
let gateway: McpHarness;
let url = '';
let headers: Readonly<Record<string, string>> = {};
test.before(async () => {
  if (chromiumPath !== undefined) browser = await launchBrowser();
  modules = await serveModules();
  backend = await startEverything({ name: 'far' });
  gateway = await startGuarded({ host: '0.0.0.0' });
  const { admin } = gateway;
  ({ url } = gateway);
  await register(admin, 'far', [{ id: 'far', endpoint: backend.url }]);
  await register(admin, 'near', [{ id: 'near', ...everythingProgram({ name: 'near' }) }]);
  ({ headers } = await newKey(admin, 'page'));
});
test.after(async () => {
  await browser?.close();
  await gateway.remove();
  await modules.close();
  await backend.close();
});

for (const mode of ['legacy', 'auto', { pin: '2026-07-28' }] as const) {
  for (const template of ['far', 'near']) {
    inBrowser(`lists, calls and elicitation work at ${template}, mode ${JSON.stringify(mode)}`, async () => {
      const { page, complaints } = await openPage();
      const visit = { url: `${url}/mcp/${template}`, headers, mode };
      assert.equal(await page.evaluate(talk, visit), {
        hasTool: true,
        simple: SIMPLE,
        asked: 'Who are you?',
        answer: true,
        steps: true,
      });
      // A legacy server shows only by refusing a request that it does not know the newer revision.
      const unexpected = complaints.filter((complaint) => !/status of 4\d\d/.test(complaint));
      assert.equal(unexpected, []);
      await page.close();
    });
  }
}

inBrowser('a page without a key can read the refusal 401 AUTHENTICATION_REQUIRED', async () => {
  const { page } = await openPage();
  const answer = await page.evaluate(async (target) => {
    const response = await fetch(target, { method: 'POST', body: '{}' });
    return [response.status, Object(await response.json()).error_code];
  }, `${url}/mcp/far`);
  assert.equal(answer, [401, 'AUTHENTICATION_REQUIRED']);
  await page.close();
});

inBrowser('a page of another origin cannot use a gateway on loopback', async () => {
  const local = await startHarness();
  try {
    const { page, complaints } = await openPage();
    const target = `${local.url}/mcp`;
    for (const mode of ['legacy', { pin: '2026-07-28' }] as const) {
      const refused = page.evaluate(talk, { url: target, headers: {}, mode });
      assert.match(await refused.then(() => 'it was let in', String), /Failed to fetch|negotiation failed/);
      assert.match(complaints.join('\n'), `failed: ${target}`);
    }
    await page.close();
  } finally {
    await local.remove();
  }
});

async function openPage() {
  const watched = await browser.open();
  await watched.page.goto(modules.origin);
  return watched;
}

/** Runs in the page: nothing of this file is in reach there. */
async function talk(visit: Visit) {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const client = new Client(
    { name: 'page', version: '1' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: visit.mode } },
  );
  let asked = '';
  client.setRequestHandler('elicitation/create', ({ params }) => {
    asked = params.message;
    return { action: 'accept', content: { username: 'ada', email: 'ada@localhost' } };
  });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(visit.url), { requestInit: { headers: visit.headers } }),
  );
  const { tools } = await client.listTools();
  const simple = await client.callTool({ name: 'test_simple_text', arguments: {} });
  const steps: number[] = [];
  await client.callTool(
    { name: 'test_tool_with_progress', arguments: {} },
    { onprogress: ({ progress }) => steps.push(progress) },
  );
  const answer = await client.callTool({ name: 'test_elicitation', arguments: { message: 'Who are you?' } });
  await client.close();
  const [first] = simple.content;
  return {
    hasTool: tools.some(({ name }) => name === 'test_simple_text'),
    simple: first?.type === 'text' ? first.text : '',
    asked,
    answer: JSON.stringify(answer.content).includes('accept'),
    steps: steps.length > 1,
  };
}

test.run();

// Widely used clients, against a real gateway with an API key: each lists the tools of a template and calls one, over an HTTP
// instance, over a stdio instance and at /mcp.

import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as assert from 'uvu/assert';
import type { EverythingHttp } from '../../fixtures/everything/http-face.ts';
import { everythingProgram, startEverything } from '../../fixtures/everything-server.ts';
import { newKey } from '../../helpers/clients/caller.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: real clients list and call tools', { timeoutMs: 120_000 });

const SIMPLE = 'This is a simple text response for testing.';
/** The paths that each client uses, and the name of the tool there. */
const PLACES = [
  { path: '/mcp/far', tool: 'test_simple_text' },
  { path: '/mcp/near/mcp', tool: 'test_simple_text' },
  { path: '/mcp', tool: 'near__test_simple_text' },
];

let backend: EverythingHttp;
let gateway: McpHarness;
const folder = folderOfAll(test)();
const environment = { PATH: process.env.PATH ?? '', HOME: folder, TMPDIR: folder };
let url = '';
let key = '';
test.before(async () => {
  backend = await startEverything({ name: 'far' });
  gateway = await startGuarded();
  ({ url } = gateway);
  const { admin } = gateway;
  await register(admin, 'far', [{ id: 'far', endpoint: backend.url }]);
  await register(admin, 'near', [{ id: 'near', ...everythingProgram({ name: 'near' }) }]);
  key = (await newKey(admin, 'clients', ['tools:call'])).headers['X-API-Key'];
});
test.after(async () => {
  await gateway.remove();
  await backend.close();
});

for (const { path, tool } of PLACES) {
  test(`with the SDK of the 1.x line at ${path}`, async () => {
    const client = new Client({ name: 'spec', version: '1' });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(url + path), {
        requestInit: { headers: { 'X-API-Key': key } },
      }),
    );
    await listsAndCalls(client, tool);
  });

  for (const mode of ['legacy', 'auto', { pin: '2026-07-28' }] as const) {
    test(`with the SDK of the 2.x line at ${path}, mode ${JSON.stringify(mode)}`, async () => {
      const client = new ModernClient({ name: 'spec', version: '1' }, { versionNegotiation: { mode } });
      await client.connect(
        new ModernTransport(new URL(url + path), { requestInit: { headers: { 'X-API-Key': key } } }),
      );
      await listsAndCalls(client, tool);
    });
  }

  for (const era of ['legacy', 'auto', 'modern']) {
    test(`with the inspector at ${path}, era ${era}`, async () => {
      const target = [
        '--cli',
        url + path,
        '--transport',
        'http',
        '--protocol-era',
        era,
        '--header',
        `X-API-Key: ${key}`,
      ];
      const inspect = (...words: string[]) =>
        run('mcp-inspector', [...target, ...words, '--format', 'json', '-q']);
      assert.match(await inspect('--method', 'tools/list'), `"${tool}"`);
      assert.match(await inspect('--method', 'tools/call', '--tool-name', tool), SIMPLE);
    });
  }

  test(`with mcp-remote as a bridge to stdio at ${path}`, async () => {
    const words = [url + path, '--allow-http', '--transport', 'http-only', '--header', `X-API-Key:${key}`];
    const client = new Client({ name: 'spec', version: '1' });
    const args = [pathOf('mcp-remote'), ...words];
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args, env: environment, stderr: 'ignore' }),
    );
    await listsAndCalls(client, tool);
  });

  test(`with mcporter at ${path}`, async () => {
    const config = join(folder, 'mcporter.json');
    const headers = { 'X-API-Key': key };
    await writeFile(
      config,
      JSON.stringify({ mcpServers: { door: { url: url + path, headers, allowHttp: true } } }),
    );
    const port = (...words: string[]) => run('mcporter', ['--config', config, ...words]);
    assert.match(await port('list', 'door', '--json'), `"${tool}"`);
    assert.match(await port('call', `door.${tool}`), SIMPLE);
  });
}

test('and the inspector reports auth_required without a key', async () => {
  const target = [
    '--cli',
    `${url}/mcp/far`,
    '--transport',
    'http',
    '--stored-auth-only',
    '--method',
    'tools/list',
  ];
  const refused = run('mcp-inspector', [...target, '--format', 'json', '-q']);
  const found = await refused.catch((failed) => `failed: ${failed.stdout}${failed.stderr}`);
  assert.match(found, /^failed: .*auth_required/s);
});

interface AnyClient {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  close(): Promise<void>;
}

async function listsAndCalls(client: AnyClient, tool: string): Promise<void> {
  const { tools } = await client.listTools();
  assert.ok(tools.some(({ name }) => name === tool));
  assert.match(JSON.stringify(await client.callTool({ name: tool, arguments: {} })), SIMPLE);
  await client.close();
}

/** Runs a program of the development dependencies with a separate home, for at most 30 s; returns its output. */
async function run(program: string, words: readonly string[]): Promise<string> {
  const limits = { timeout: 30_000, killSignal: 'SIGKILL', maxBuffer: 16 * 1024 * 1024 } as const;
  const args = [pathOf(program), ...words];
  const running = promisify(execFile)(process.execPath, args, { cwd: folder, env: environment, ...limits });
  running.child.stdin?.end();
  return (await running).stdout;
}

function pathOf(program: string): string {
  return join(import.meta.dirname, '../../../node_modules/.bin', program);
}

test.run();

// Real clients that know nothing but an address: each finds the sign-in by its own OAuth code, a user agrees in a browser, and a tool is
// called. No key is copied.

import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
  UnauthorizedError as ModernUnauthorized,
} from '@modelcontextprotocol/client';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as assert from 'uvu/assert';
import type { Json } from '../../fixtures/wire.ts';
import { authorize, ScriptedBrowser } from '../../helpers/browsers/scripted-browser.ts';
import { eventually } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { type OAuthHarness, startWithSignIn } from '../../helpers/identity/oauth-gateway.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: sign-in by an address alone', { timeoutMs: 180_000 });
const SIMPLE = 'This is a simple text response for testing.';
const PLACES = [
  { path: '/mcp/tools', tool: 'test_simple_text' },
  { path: '/mcp', tool: 'tools__test_simple_text' },
];
const folder = folderOfAll(test)();
// The inspector starts no sign-in without a terminal, unless it may open a browser.
const environment = {
  ...{ PATH: process.env.PATH ?? '', HOME: folder, TMPDIR: folder },
  ...{ MCP_AUTO_OPEN_ENABLED: 'true', MCP_INSPECTOR_SECRET_STORE: 'memory' },
};
const children: ChildProcess[] = [];
let gateway: OAuthHarness;
test.before(async () => {
  gateway = await startWithSignIn();
});
test.after.each(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});
test.after(() => gateway.remove());

for (const { path, tool } of PLACES) {
  test(`with the SDK of the 1.x line at ${path}`, async () => {
    const url = new URL(gateway.url + path);
    const memory = new Memory('SDK 1.x');
    const open = () => new StreamableHTTPClientTransport(url, { authProvider: memory.provider() });
    const transport = open();
    const client = new Client({ name: 'spec', version: '1' });
    const refused = await client.connect(transport).catch((error: unknown) => error);
    assert.instance(refused, UnauthorizedError);
    const back = await authorize(new ScriptedBrowser(gateway.url), memory.sentTo(), { username: 'ada' });
    assert.is(back.searchParams.get('state'), memory.state);
    await transport.finishAuth(back.searchParams.get('code') ?? '');
    const signedIn = new Client({ name: 'spec', version: '1' });
    await signedIn.connect(open());
    await listsAndCalls(signedIn, tool);
    await refreshesBySelf(memory, async () => {
      const later = new Client({ name: 'spec', version: '1' });
      await later.connect(open());
      await listsAndCalls(later, tool);
    });
  });

  // A registration each: an address has ten a minute.
  const modes = path === '/mcp' ? ([{ pin: '2026-07-28' }] as const) : (['legacy', 'auto'] as const);
  for (const mode of modes) {
    test(`with the SDK of the 2.x line at ${path}, mode ${JSON.stringify(mode)}`, async () => {
      const url = new URL(gateway.url + path);
      const memory = new Memory(`SDK 2.x, ${JSON.stringify(mode)}`);
      const open = () => new ModernTransport(url, { authProvider: memory.provider() });
      const transport = open();
      const made = () => new ModernClient({ name: 'spec', version: '1' }, { versionNegotiation: { mode } });
      const refused = await made()
        .connect(transport)
        .catch((error: unknown) => error);
      assert.instance(refused, ModernUnauthorized);
      const back = await authorize(new ScriptedBrowser(gateway.url), memory.sentTo(), { username: 'ada' });
      await transport.finishAuth(back.searchParams); // it compares `iss`
      const signedIn = made();
      await signedIn.connect(open());
      await listsAndCalls(signedIn, tool);
      await refreshesBySelf(memory, async () => {
        const later = made();
        await later.connect(open());
        await listsAndCalls(later, tool);
      });
    });
  }
}

test('with mcp-remote as a bridge to stdio', async () => {
  const port = await freePort();
  const words = [`${gateway.url}/mcp/tools`, String(port), '--allow-http', '--transport', 'http-only'];
  const transport = new StdioClientTransport({
    ...{
      command: process.execPath,
      args: [pathOf('mcp-remote'), ...words],
      env: environment,
      stderr: 'pipe',
    },
  });
  let said = '';
  transport.stderr?.on('data', (chunk) => {
    said += chunk;
  });
  const client = new Client({ name: 'spec', version: '1' });
  const connected = client.connect(transport);
  connected.catch(() => {
    // Awaited below.
  });
  await visits(() => said, /visiting:\s+(http\S+)/, 'mcp-remote');
  await connected;
  await listsAndCalls(client, 'test_simple_text');
});

test('with mcporter', async () => {
  const config = join(folder, 'mcporter.json');
  const door = { url: `${gateway.url}/mcp/tools`, auth: 'oauth', allowHttp: true };
  await writeFile(config, JSON.stringify({ mcpServers: { door } }));
  const login = running('mcporter', ['--config', config, 'auth', 'door', '--no-browser', '--json']);
  await visits(login.said, /"authorizationUrl":\s*"([^"]+)"/, 'mcporter');
  assert.is(await login.end, 0, login.said());
  const list = running('mcporter', ['--config', config, 'list', 'door', '--json']);
  assert.is(await list.end, 0, list.said());
  assert.match(list.said(), '"test_simple_text"');
  const call = running('mcporter', ['--config', config, 'call', 'door.test_simple_text']);
  assert.is(await call.end, 0, call.said());
  assert.match(call.said(), SIMPLE);
});

test('with the inspector', async () => {
  const callback = `http://127.0.0.1:${await freePort()}/oauth/callback`;
  const target = ['--cli', `${gateway.url}/mcp/tools`, '--transport', 'http', '--callback-url', callback];
  const inspecting = running('mcp-inspector', [...[...target, '--method', 'tools/list', '--format', 'json']]);
  await visits(inspecting.said, /(http:\/\/\S+\/oauth\/authorize\?[^\s"]+)/, 'inspector');
  assert.is(await inspecting.end, 0, inspecting.said());
  assert.match(inspecting.said(), '"test_simple_text"');
});

test('each sign-in is a grant of its own, named after its client', async () => {
  const grants: Json[] = Object((await gateway.admin('GET /auth/grants')).body);
  const names = grants.map(({ client_name: name }) => String(name));
  assert.is(names.filter((name) => name.startsWith('SDK ')).length, 5, names.join());
  assert.is(new Set(grants.map(({ id }) => id)).size, grants.length);
});

test.run();

/** What an application keeps of a server. */
class Memory {
  state = 'a state of the application';
  tokens: { access_token: string; refresh_token?: string; token_type: string } | undefined;
  refreshes = 0;
  readonly #name: string;
  #client: never | undefined;
  #discovered: never | undefined;
  #verifier = '';
  #sentTo: URL | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  sentTo(): URL {
    assert.ok(this.#sentTo, 'the client sent nobody to the sign-in');
    return this.#sentTo as URL;
  }

  /** For both lines of the SDK. */
  provider() {
    const redirectUrl = 'http://localhost:41999/callback';
    return {
      redirectUrl,
      clientMetadata: {
        ...{ client_name: this.#name, redirect_uris: [redirectUrl], token_endpoint_auth_method: 'none' },
        ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
      },
      state: () => this.state,
      clientInformation: () => this.#client,
      saveClientInformation: (client: unknown) => {
        this.#client = client as never;
      },
      tokens: () => this.tokens,
      saveTokens: (tokens: NonNullable<Memory['tokens']>) => {
        if (this.tokens !== undefined) this.refreshes += 1;
        this.tokens = tokens;
      },
      redirectToAuthorization: (url: URL) => {
        this.#sentTo = url;
      },
      saveCodeVerifier: (verifier: string) => {
        this.#verifier = verifier;
      },
      codeVerifier: () => this.#verifier,
      // Then the SDK binds the answer to the server that it asked.
      saveDiscoveryState: (state: unknown) => {
        this.#discovered = state as never;
      },
      discoveryState: () => this.#discovered,
    };
  }
}

/** With a token that is no longer valid, the client gets another one without its user. */
async function refreshesBySelf(memory: Memory, work: () => Promise<void>): Promise<void> {
  assert.ok(memory.tokens?.refresh_token, 'no refresh token');
  const before = memory.refreshes;
  memory.tokens = { ...(memory.tokens ?? { token_type: 'Bearer' }), access_token: 'over.and.gone' };
  await work();
  assert.is(memory.refreshes, before + 1);
}

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

/** A browser follows the address that a program has printed, and then calls the program back. */
async function visits(said: () => string, pattern: RegExp, program: string): Promise<void> {
  const address = await eventually(
    async () => pattern.exec(said())?.[1],
    (found) => found !== undefined,
    60_000,
  );
  assert.ok(address, `${program} prints no address: ${said()}`);
  const back = await authorize(new ScriptedBrowser(gateway.url), String(address), { username: 'ada' });
  const heard = await fetch(back, { signal: AbortSignal.timeout(20_000) });
  assert.ok(heard.ok, `${program}: ${heard.status} at its own callback: ${await heard.text()}`);
}

/** A program of the development dependencies with a separate home. */
function running(program: string, words: readonly string[]) {
  const child = spawn(process.execPath, [pathOf(program), ...words], {
    ...{ cwd: folder, env: environment, stdio: ['ignore', 'pipe', 'pipe'] },
  });
  children.push(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk) => {
      said += chunk;
    });
  const end = new Promise<number | null>((resolve) => child.once('close', resolve));
  return { said: () => said, end };
}

function pathOf(program: string): string {
  return join(import.meta.dirname, '../../../node_modules/.bin', program);
}

// `stagedoor bridge` as MCP clients start it: the official SDKs over standard input and output, with a real gateway with
// authentication, in both eras; and a restart of the gateway while the bridge runs.

import { join } from 'node:path';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernTransport } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ProgressNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import * as assert from 'uvu/assert';
import { everythingProgram } from '../../fixtures/everything-server.ts';
import { newKey } from '../../helpers/clients/caller.ts';
import { eventually } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { binPath, runProgram } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: the bridge', { timeoutMs: 60_000 });

const CHANGED = 'notifications/tools/list_changed';
const SIMPLE = 'This is a simple text response for testing.';
const folder = folderOfAll(test)();
let url = '';
let key = '';
let gateway: McpHarness;
test.before(async () => {
  url = `http://127.0.0.1:${await freePort()}`;
  gateway = await startGateway();
  const { admin } = gateway;
  await register(admin, 'near', [{ id: 'one', ...everythingProgram() }]);
  key = (await newKey(admin, 'bridge', ['tools:call'])).headers['X-API-Key'];
});
test.after(() => gateway.remove());

function startGateway(): Promise<McpHarness> {
  const env = { GATEWAY_DATABASE_URL: `sqlite:///${join(folder, 'gateway.db')}` };
  return startGuarded({ port: Number(new URL(url).port), env, folder });
}

function program() {
  const words = [binPath, 'bridge', 'near', '--url', url];
  const env = { PATH: process.env.PATH ?? '', HOME: folder, STAGEDOOR_API_KEY: key };
  return { command: process.execPath, args: words, env, stderr: 'pipe' as const };
}

test('serves a legacy client: lists, progress, elicitation, sampling and cancellation', async () => {
  const client = new Client(
    { name: 'spec', version: '1' },
    { capabilities: { elicitation: {}, sampling: {} } },
  );
  client.setRequestHandler(ElicitRequestSchema, async () => ({
    action: 'accept',
    content: { username: 'ada' },
  }));
  client.setRequestHandler(CreateMessageRequestSchema, async () => ({
    model: 'none',
    role: 'assistant',
    content: { type: 'text', text: 'a word' },
  }));
  await client.connect(new StdioClientTransport(program()));
  try {
    const { tools } = await client.listTools();
    assert.ok(tools.some(({ name }) => name === 'test_simple_text'));
    assert.match(await say(client, 'test_simple_text'), SIMPLE);
    // Not `onprogress`: the SDK drops it when the answer comes in the same chunk as the progress.
    const progress: number[] = [];
    client.setNotificationHandler(ProgressNotificationSchema, ({ params }) => {
      progress.push(params.progress);
    });
    const _meta = { progressToken: 'mine' };
    await client.callTool({ name: 'test_tool_with_progress', arguments: {}, _meta });
    assert.ok(progress.length > 1, `progress: ${progress}`);
    assert.match(await say(client, 'test_elicitation', { message: 'Who?' }), 'ada');
    assert.match(await say(client, 'test_sampling', { prompt: 'Say' }), 'a word');
    const giveUp = new AbortController();
    client.setRequestHandler(ElicitRequestSchema, () => {
      giveUp.abort('enough');
      return new Promise(() => {});
    });
    const call = { name: 'test_elicitation', arguments: { message: 'Who?' } };
    const error = await client.callTool(call, undefined, { signal: giveUp.signal }).catch((thrown) => thrown);
    assert.match(String(error), 'enough');
    assert.match(await say(client, 'test_simple_text'), SIMPLE);
  } finally {
    await client.close();
  }
});

test('serves a stateless client', async () => {
  const client = new ModernClient(
    { name: 'spec', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(new ModernTransport(program()));
  try {
    const { tools } = await client.listTools();
    assert.ok(tools.some(({ name }) => name === 'test_simple_text'));
    const { content } = await client.callTool({ name: 'test_simple_text', arguments: {} });
    assert.match(JSON.stringify(content), SIMPLE);
  } finally {
    await client.close();
  }
});

test('continues after a restart of the gateway, with a call and notifications', async () => {
  const client = new Client({ name: 'spec', version: '1' });
  const changes: string[] = [];
  client.fallbackNotificationHandler = async ({ method }) => void changes.push(method);
  const transport = new StdioClientTransport(program());
  let said = '';
  transport.stderr?.on('data', (text) => {
    said += text;
  });
  await client.connect(transport);
  try {
    assert.match(await say(client, 'test_simple_text'), SIMPLE);
    gateway.program.signal('SIGTERM');
    await gateway.program.end();
    await gateway.remove();
    const whileAway = say(client, 'test_simple_text');
    gateway = await startGateway();
    assert.match(await whileAway, SIMPLE);
    assert.match(await say(client, 'test_simple_text'), SIMPLE);
    // The message comes on another pipe than the answer.
    const isSaid = async () => said.includes('the session was lost and has been reopened');
    assert.ok(await eventually(isSaid, Boolean), said);
    assert.ok(await eventually(async () => changes.includes(CHANGED), Boolean));
    changes.length = 0;
    // Notifications of the server arrive again, too, once the gateway listens for the new session.
    const isTold = async () => {
      await say(client, 'test_trigger_tool_change');
      return changes.includes(CHANGED);
    };
    assert.ok(await eventually(isTold, Boolean));
    assert.not.match(said, key);
  } finally {
    await client.close();
  }
});

test('answers piped requests, and ends with its input', async () => {
  const lines = [
    initialize,
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 'two', method: 'tools/call', params: { name: 'test_simple_text', arguments: {} } },
  ];
  const { code, answers } = await piped(`${lines.map((each) => JSON.stringify(each)).join('\n')}\nno\n`);
  assert.is(code, 0);
  assert.equal(answers.map(({ id }) => id).sort(), [1, 'two', null].sort());
  assert.match(JSON.stringify(answers.find(({ id }) => id === 'two')), SIMPLE);
  assert.is(answers.find(({ id }) => id === null)?.error?.code, -32700);
});

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } },
};
for (const [what, template, apiKey, reason] of [
  [
    'an invalid API key',
    'near',
    'sd_no_no',
    /the API key in STAGEDOOR_API_KEY was not sent to \S+: it does not have the form of a key, /,
  ],
  [
    'no API key',
    'near',
    '',
    /^not logged in at http:\S+; run "\S.*stagedoor\S* gateway login <name> --url http:\S+", or set/,
  ],
  ['an unknown template', 'nothing', undefined, /nothing/],
] as const) {
  test(`answers with the reason of the gateway for ${what}`, async () => {
    const { code, answers, err } = await piped(`${JSON.stringify(initialize)}\n`, template, apiKey);
    assert.is(code, 0);
    assert.is(answers.length, 1, err);
    assert.match(String(answers[0]?.error?.message), reason);
  });
}

interface Answer {
  readonly id?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

async function piped(input: string, template = 'near', apiKey = key) {
  const words = ['bridge', template, '--url', url];
  const outcome = await runProgram(words, { env: { STAGEDOOR_API_KEY: apiKey }, input });
  const lines = outcome.out.trim().split('\n');
  return { ...outcome, answers: lines.map((line): Answer => JSON.parse(line)) };
}

async function say(client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  return JSON.stringify(await client.callTool({ name, arguments: args }));
}

test.run();

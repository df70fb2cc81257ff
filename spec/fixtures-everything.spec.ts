// Keeps the everything server honest, with the official SDK's client on the other side: both eras over both transports,
// builds that know one era only, and states that only the process that sealed them opens. That it passes the conformance
// suites is seen in every `npm run conformance`.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import * as assert from 'uvu/assert';
import { startFixture } from './conformance-suite/children.ts';
import { Drive, failureOf, modernMeta, post } from './fixtures/drive.ts';
import type { EverythingEra } from './fixtures/everything/http-face.ts';
import { WATCHED_URI } from './fixtures/everything/resources.ts';
import { type EverythingOptions, everythingProgram, startEverything } from './fixtures/everything-server.ts';
import { type Json, objectOr } from './fixtures/wire.ts';
import { suite } from './helpers/suite.ts';

type ClientEra = 'legacy' | 'modern';
type Transport = 'http' | 'stdio';

const drive = new Drive();
const answers: Readonly<Record<string, string | boolean>> = {
  username: 'ada',
  email: 'ada@example.com',
  name: 'Ada',
  color: 'blue',
  ok: true,
};

/** A client that answers every question, connected to a server of its own. */
async function connect(
  era: ClientEra,
  transport: Transport,
  options: EverythingOptions = {},
): Promise<Client> {
  const capabilities = { elicitation: {}, sampling: {}, roots: {} };
  const mode = era === 'modern' ? ({ pin: '2026-07-28' } as const) : 'legacy';
  const client = new Client({ name: 'spec', version: '1' }, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', ({ params }) => {
    const { properties = {} } = objectOr(objectOr(params).requestedSchema);
    const fields = Object.keys(objectOr(properties));
    return {
      action: 'accept',
      content: Object.fromEntries(fields.map((field) => [field, answers[field] ?? ''])),
    };
  });
  client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'Paris' },
  }));
  client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///a' }] }));
  if (transport === 'stdio') {
    await client.connect(new StdioClientTransport({ ...everythingProgram(options), stderr: 'ignore' }));
  } else {
    const server = await startEverything(options);
    drive.onClose(() => server.close());
    await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
  }
  drive.onClose(() => client.close());
  return client;
}

async function call(client: Client, name: string, values: Json = {}): Promise<unknown> {
  const { content } = await client.callTool({ name, arguments: values });
  return objectOr(content[0]).text;
}

const everything = suite('everything server');
everything.after.each(() => drive.closeAll());

for (const era of ['legacy', 'modern'] as const) {
  for (const transport of ['http', 'stdio'] as const) {
    everything(`serves the ${era} era over ${transport}`, async () => {
      const client = await connect(era, transport, { name: 'first' });
      const version = era === 'modern' ? '2026-07-28' : '2025-11-25';
      assert.equal(
        [client.getServerVersion()?.name, client.getNegotiatedProtocolVersion()],
        ['first', version],
      );
      const { tools } = await client.listTools();
      assert.is(new Set(tools.map(({ name }) => name)).size, 32);
      assert.is(await call(client, 'test_simple_text'), 'This is a simple text response for testing.');
      assert.match(String(await call(client, 'test_instance')), '"name":"first"');
      const { prompts } = await client.listPrompts();
      const { resources } = await client.listResources();
      assert.equal([prompts.length, resources.length], [5, 3]);
      const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' } as const;
      const { completion } = await client.complete({ ref, argument: { name: 'arg1', value: 'par' } });
      assert.equal(completion.values, ['paris', 'park', 'party']);
    });

    everything(`asks ${era} clients over ${transport}`, async () => {
      const client = await connect(era, transport);
      assert.equal(
        [
          await call(client, 'test_sampling', { prompt: 'capital?' }),
          await call(client, 'test_elicitation', { message: 'who?' }),
          await call(client, 'test_input_required_result_list_roots'),
          await call(client, 'test_input_required_result_request_state'),
          await call(client, 'test_input_required_result_multi_round'),
          await call(client, 'test_input_required_result_capabilities'),
        ],
        [
          'LLM response: Paris',
          'User response: action=accept, content={"username":"ada","email":"ada@example.com"}',
          '[{"uri":"file:///a"}]',
          'state-ok',
          '{"action":"accept","content":{"name":"Ada"}} {"action":"accept","content":{"color":"blue"}}',
          'Asked for: user_name, greeting, client_roots',
        ],
      );
    });

    everything(`tells ${era} clients over ${transport} of progress and changes`, async () => {
      const client = await connect(era, transport);
      const steps: number[] = [];
      const onprogress = ({ progress }: { progress: number }): void => void steps.push(progress);
      await client.callTool({ name: 'test_tool_with_progress' }, { onprogress });
      // The client drops a step that comes in one piece with the answer.
      assert.equal(steps.slice(0, 2), [0, 50]);
      const heard: string[] = [];
      const both = new Promise<void>((resolve) => {
        const hear = ({ method }: { method: string }): void => {
          heard.push(method);
          if (heard.length === 2) resolve();
        };
        client.setNotificationHandler('notifications/tools/list_changed', hear);
        client.setNotificationHandler('notifications/resources/updated', hear);
      });
      if (era === 'legacy') await client.subscribeResource({ uri: WATCHED_URI });
      else await client.listen({ toolsListChanged: true, resourceSubscriptions: [WATCHED_URI] });
      await call(client, 'test_trigger_prompt_change');
      await call(client, 'test_trigger_tool_change');
      await call(client, 'test_trigger_resource_update');
      await both;
      assert.equal(heard, ['notifications/tools/list_changed', 'notifications/resources/updated']);
    });
  }
}

for (const [build, stranger] of [
  ['legacy', 'modern'],
  ['modern', 'legacy'],
] as const satisfies [EverythingEra, ClientEra][]) {
  everything(`knows no ${stranger} era in its ${build} build`, async () => {
    for (const transport of ['http', 'stdio'] as const) {
      const client = await connect(build, transport, { era: build });
      assert.is(await call(client, 'test_simple_text'), 'This is a simple text response for testing.');
      assert.instance(await failureOf(connect(stranger, transport, { era: build })), Error);
    }
  });
}

everything('opens no state that another process sealed', async () => {
  const [one, two] = await Promise.all([startEverything(), startEverything()]);
  drive.onClose(() => Promise.all([one.close(), two.close()]));
  const name = 'test_input_required_result_request_state';
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name };
  const _meta = { ...modernMeta, 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
  const params = { name, arguments: {}, _meta };
  const asked = await post(one.url, { id: 1, method: 'tools/call', params }, headers);
  const { requestState, resultType } = objectOr(asked.body.result);
  assert.is(resultType, 'input_required');
  const inputResponses = { confirm: { action: 'accept', content: { ok: true } } };
  const retry = { id: 2, method: 'tools/call', params: { ...params, inputResponses, requestState } };
  assert.is(objectOr((await post(two.url, retry, headers)).body.error).code, -32602);
  assert.equal(objectOr((await post(one.url, retry, headers)).body.result).content, [
    { type: 'text', text: 'state-ok' },
  ]);
});

everything('gives the events of a session again, and knows no others', async () => {
  const server = await startEverything();
  drive.onClose(() => server.close());
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } };
  const opened = await post(server.url, { id: 1, method: 'initialize', params });
  const session = opened.headers.get('mcp-session-id') ?? '';
  const headers = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' };
  await post(server.url, { method: 'notifications/initialized' }, headers);
  const call = { id: 2, method: 'tools/call', params: { name: 'test_reconnection' } };
  const { text } = await post(server.url, call, headers);
  const [, eventId = ''] = /^id: (\d+)\nretry: 50\ndata: \n\n$/.exec(text) ?? [];
  const accept = 'text/event-stream';
  const resumed = await fetch(server.url, { headers: { ...headers, accept, 'last-event-id': eventId } });
  const first = await resumed.body?.getReader().read();
  assert.match(new TextDecoder().decode(first?.value), 'You came back');
  const foreign = await post(server.url, { id: 3, method: 'ping' }, { ...headers, 'mcp-session-id': 'x' });
  assert.equal([eventId !== '', foreign.status], [true, 404]);
});

everything('refuses names of other hosts', async () => {
  const server = await startEverything();
  drive.onClose(() => server.close());
  const statuses: (number | undefined)[] = [];
  for (const headers of [{ host: 'evil.example.com' }, { origin: 'http://evil.example.com' }]) {
    const [response] = await once(request(server.url, { headers }).end(), 'response');
    response.resume();
    statuses.push(response.statusCode);
  }
  assert.equal(statuses, [403, 403]);
});

everything('ends with its input over stdio, and at SIGTERM over HTTP', async () => {
  const { command, args } = everythingProgram();
  const program = spawn(command, args, { stdio: ['pipe', 'ignore', 'ignore'] });
  program.stdin.end();
  assert.equal(await once(program, 'exit'), [0, null]);
  const fixture = await startFixture({ name: 'http' });
  await connectTo(fixture.url);
  await fixture.end();
  assert.instance(await failureOf(fetch(fixture.url)), TypeError);
});

/** Leaves a session with an open event stream behind. */
async function connectTo(url: string): Promise<void> {
  const client = new Client({ name: 'spec', version: '1' });
  drive.onClose(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
}

everything.run();

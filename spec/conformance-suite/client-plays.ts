// What a client does in each client scenario of the conformance suites: what the scenario's server waits for, and then it
// looks at the answers, which the scenarios do not. Who stands between client and server makes no difference here.

import type { Client } from '@modelcontextprotocol/client';
import { type Json, objectOr } from '../fixtures/wire.ts';

/** What a client has to be able to. */
export interface Player {
  listTools(): Promise<{ tools: readonly { readonly name: string; readonly inputSchema?: unknown }[] }>;
  listResources(): Promise<{ resources: readonly { readonly uri: string }[] }>;
  listPrompts(): Promise<{ prompts: readonly { readonly name: string }[] }>;
  callTool(params: { name: string; arguments?: Json }): Promise<{ content: readonly unknown[] }>;
  readResource(params: { uri: string }): Promise<unknown>;
  getPrompt(params: { name: string }): Promise<unknown>;
}

/** Rejects when an answer is not what the scenario's server says. `context` is what the suite tells beside the URL. */
export type Play = (client: Player, context: Json) => Promise<void>;

/** What a client can do, so that every server may ask it; fields that it leaves out of a form are filled in. */
export const CAPABILITIES = {
  elicitation: { form: { applyDefaults: true } },
  sampling: {},
  roots: {},
} as const;

/** Lets a client accept every form as it comes. */
export function acceptForms(client: Client): void {
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
}

/** Every scenario that says something about a client and is not about authorization. */
export const PLAYS: Readonly<Record<string, Play>> = {
  initialize: async (client) => {
    await client.listTools();
  },

  tools_call: async (client) => {
    await client.listTools();
    await callsFor(client, 'add_numbers', 'The sum of 5 and 3 is 8', { a: 5, b: 3 });
  },

  'sse-retry': async (client) => {
    await client.listTools();
    await callsFor(client, 'test_reconnection', 'Reconnection test completed successfully');
  },

  'elicitation-sep1034-client-defaults': async (client) => {
    await client.listTools();
    await callsFor(client, 'test_client_elicitation_defaults', 'Elicitation completed');
  },

  'json-schema-2020-12-preservation': async (client) => {
    const { tools } = await client.listTools();
    const schema = tools.find(({ name }) => name === 'json_schema_2020_12_tool')?.inputSchema;
    await callsFor(client, 'json_schema_echo', 'echoed', { schema });
  },

  'json-schema-ref-no-deref': async (client) => {
    const { tools } = await client.listTools();
    expect('the tools', tools.map(({ name }) => name).join(), 'lookup_user');
  },

  'request-metadata': async (client) => {
    await client.listTools();
    await client.callTool({ name: 'anything', arguments: {} });
  },

  // One of the calls is about nothing that the others were asked for.
  'sep-2322-client-request-state': async (client) => {
    await client.listTools();
    await Promise.all([
      callsFor(client, 'test_mrtr_echo_state', 'echo-state-ok'),
      callsFor(client, 'test_mrtr_unrelated', 'unrelated-ok'),
    ]);
    await callsFor(client, 'test_mrtr_no_state', 'no-state-ok');
    // The SDK's client does not take it, though clients shall; the scenario looks only whether it is called again.
    await client.callTool({ name: 'test_mrtr_no_result_type' }).catch(() => undefined);
  },

  'http-standard-headers': async (client) => {
    const { tools } = await client.listTools();
    for (const { name } of tools) await callsFor(client, name, 'Headers test completed');
    const { resources } = await client.listResources();
    for (const { uri } of resources) await client.readResource({ uri });
    const { prompts } = await client.listPrompts();
    for (const { name } of prompts) await client.getPrompt({ name });
    expect('the lists', [tools, resources, prompts].map(({ length }) => length).join(), '2,2,1');
  },

  'http-custom-headers': async (client, { toolCalls }) => {
    await client.listTools();
    if (!Array.isArray(toolCalls)) throw new Error('the suite told no calls');
    for (const { name, arguments: values } of toolCalls.map(objectOr)) {
      await callsFor(client, String(name), 'Custom headers test completed', objectOr(values));
    }
  },

  // A client uses what is listed to it.
  'http-invalid-tool-headers': async (client) => {
    const { tools } = await client.listTools();
    for (const { name } of tools) await callsFor(client, name, 'Tool call received', { region: 'us-west1' });
  },
};

async function callsFor(client: Player, name: string, wanted: string, values: Json = {}): Promise<void> {
  const { content } = await client.callTool({ name, arguments: values });
  const text = String(objectOr(content[0]).text);
  if (!text.startsWith(wanted)) throw new Error(`${name} answered ${JSON.stringify(text)}, not ${wanted}`);
}

function expect(what: string, is: string, wanted: string): void {
  if (is !== wanted) throw new Error(`${what}: ${is}, not ${wanted}`);
}

// The steps of a client in each client scenario of the conformance suites: the requests that the scenario's server expects, and
// checks of the answers, which the scenarios do not make. A gateway between client and server makes no difference here.

import type { Client } from '@modelcontextprotocol/client';
import { type Json, objectOr } from '../fixtures/wire.ts';

/** The functions that a client must have. */
export interface ScenarioClient {
  listTools(): Promise<{ tools: readonly { readonly name: string; readonly inputSchema?: unknown }[] }>;
  listResources(): Promise<{ resources: readonly { readonly uri: string }[] }>;
  listPrompts(): Promise<{ prompts: readonly { readonly name: string }[] }>;
  callTool(params: { name: string; arguments?: Json }): Promise<{ content: readonly unknown[] }>;
  readResource(params: { uri: string }): Promise<unknown>;
  getPrompt(params: { name: string }): Promise<unknown>;
}

/** Rejects if an answer is not that of the scenario's server. `context` is the data of the suite beside the URL. */
export type Scenario = (client: ScenarioClient, context: Json) => Promise<void>;

/** Capabilities of a client, so that every server may ask it; fields that it omits from a form are filled in. */
export const CAPABILITIES = {
  elicitation: { form: { applyDefaults: true } },
  sampling: {},
  roots: {},
} as const;

/** Lets a client accept every form unchanged. */
export function acceptForms(client: Client): void {
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
}

/** Every scenario that tests a client and is not about authorization. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
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

  // One of the calls needs no input, unlike the others.
  'sep-2322-client-request-state': async (client) => {
    await client.listTools();
    await Promise.all([
      callsFor(client, 'test_mrtr_echo_state', 'echo-state-ok'),
      callsFor(client, 'test_mrtr_unrelated', 'unrelated-ok'),
    ]);
    await callsFor(client, 'test_mrtr_no_state', 'no-state-ok');
    // The SDK's client does not accept it, though clients should; the scenario only checks whether the tool is called again.
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
    if (!Array.isArray(toolCalls)) throw new Error('the suite named no calls');
    for (const { name, arguments: values } of toolCalls.map(objectOr)) {
      await callsFor(client, String(name), 'Custom headers test completed', objectOr(values));
    }
  },

  // A client uses only listed tools.
  'http-invalid-tool-headers': async (client) => {
    const { tools } = await client.listTools();
    for (const { name } of tools) await callsFor(client, name, 'Tool call received', { region: 'us-west1' });
  },
};

async function callsFor(
  client: ScenarioClient,
  name: string,
  wanted: string,
  values: Json = {},
): Promise<void> {
  const { content } = await client.callTool({ name, arguments: values });
  const text = String(objectOr(content[0]).text);
  if (!text.startsWith(wanted)) throw new Error(`${name} answered ${JSON.stringify(text)}, not ${wanted}`);
}

function expect(what: string, is: string, wanted: string): void {
  if (is !== wanted) throw new Error(`${what}: ${is}, not ${wanted}`);
}

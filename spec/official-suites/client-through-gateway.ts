// The client that a client scenario runs: `node client-through-gateway.ts --speaks legacy|modern|api [--gateway URL] URL`. It
// connects to the scenario's server at the URL directly, or registers it at the gateway and connects to that; `api` is the
// gateway's HTTP API instead of MCP. The suite starts it, and names the scenario in the environment. Its last line is `done`,
// or names the failure.

import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import * as assert from 'uvu/assert';
import { objectOr } from '../fixtures/wire.ts';
import { caller } from '../helpers/clients/caller.ts';
import { ApiClient } from './api-client.ts';
import { DONE } from './checks.ts';
import { acceptForms, CAPABILITIES, SCENARIOS, type ScenarioClient } from './client-scenarios.ts';

/** Longest time of a scenario, in ms; below the limits of its callers, so that it can report the reason. */
const scenarioMs = 15_000;
const healthySeconds = 10;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { speaks: { type: 'string' }, gateway: { type: 'string' } },
});

/** Ends the program, even with an open stream. */
function end(status: number, output: string): void {
  process.stdout.write(`${output}\n`, () => process.exit(status));
}

setTimeout(() => end(1, `the client had not finished after ${scenarioMs / 1000} s`), scenarioMs).unref();
process.stdin.resume().once('close', () => process.exit(1)); // the suite is gone
try {
  await main(positionals.at(-1) ?? '');
  end(0, DONE);
} catch (error) {
  end(1, String(error).replaceAll('\n', ' '));
}

async function main(scenarioUrl: string): Promise<void> {
  const scenario = SCENARIOS[process.env.MCP_CONFORMANCE_SCENARIO ?? ''];
  if (scenario === undefined) throw new Error(`no such scenario: ${process.env.MCP_CONFORMANCE_SCENARIO}`);
  const context = objectOr(JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}'));
  const run = (url: string): Promise<void> => runAt(url, (client) => scenario(client, context));
  const { gateway } = values;
  if (gateway === undefined) return run(scenarioUrl);
  const template = `scenario-${new URL(scenarioUrl).port}`;
  const ask = caller(gateway);
  const body = { template_name: template, instance: { id: 'server', endpoint: scenarioUrl } };
  const made = await ask(`POST /gateway/register?wait=${healthySeconds}`, body);
  assert.is(objectOr(made.body).healthy, true, JSON.stringify(made.body));
  try {
    await run(`${gateway}/mcp/${template}`);
  } finally {
    // The scenario's server ends only after its last connection.
    const { status } = await ask(`DELETE /gateway/deregister/${template}/server`);
    assert.is(status, 204, 'it was not deregistered');
  }
}

async function runAt(url: string, scenario: (client: ScenarioClient) => Promise<void>): Promise<void> {
  const { speaks } = values;
  if (speaks === 'api') return scenario(new ApiClient(url));
  const mode = speaks === 'modern' ? 'auto' : 'legacy';
  const client = new Client(
    { name: 'scenario', version: '1' },
    { capabilities: CAPABILITIES, versionNegotiation: { mode } },
  );
  acceptForms(client);
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  try {
    const spoken = client.getNegotiatedProtocolVersion() ?? '';
    if (spoken >= '2026' !== (speaks === 'modern')) throw new Error(`it came to speak ${spoken}`);
    await scenario(client);
    if (speaks === 'legacy') await transport.terminateSession();
  } finally {
    await client.close();
  }
}

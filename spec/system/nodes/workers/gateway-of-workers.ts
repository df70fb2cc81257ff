// A gateway with two workers, for the journeys of workers.

import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { startEverything } from '../../../fixtures/everything-server.ts';
import { newKey, toolText } from '../../../helpers/clients/caller.ts';
import { LegacyClient, textOf } from '../../../helpers/clients/mcp-client.ts';
import { GUARDED, type McpHarness, register, startGuarded } from '../../../helpers/programs/mcp-program.ts';
import type { Program } from '../../../helpers/programs/program.ts';
import type { Suite } from '../../../helpers/suite.ts';
import { capabilities } from '../mcp-nodes.ts';

/** What the tool of the template `legacy` answers. */
export const SIMPLE = 'This is a simple text response for testing.';
const SECRET = 'a secret of these workers, 32 bytes or more';

export interface Workers extends McpHarness {
  /** Process ids, by number. */
  pids(): [number, number];
  /** Number and state of each worker that has not ended, sorted. */
  states(): Promise<string[]>;
  /** Of the peer channel of each. */
  addresses(): Promise<string[]>;
  clients(count: number): Promise<LegacyClient[]>;
  /** Status and text of a call without a session, over a connection of its own. */
  callTool(template: string): Promise<readonly unknown[]>;
  metrics(): Promise<string>;
  /** Status and text of a call in this session, over a connection of its own. */
  call(sessionId: string): Promise<readonly unknown[]>;
}

/** The folders of socket files that are there. */
export function socketFolders({ home }: Program): string[] {
  return readdirSync(home).filter((name) => name.startsWith('stagedoor-workers-'));
}

type Backend = Awaited<ReturnType<typeof startEverything>>;

/** Opens the backend before the tests of a suite. `start` starts a gateway, which is closed after them; put in `opened` what is closed after it. */
export function workersOf(test: Suite) {
  const opened: (() => unknown)[] = [];
  let backend: Backend;
  test.before(async () => {
    backend = await startEverything({ era: 'legacy' });
    opened.unshift(() => backend.close());
  });
  test.after(async () => {
    for (const close of opened) await close();
  });
  return {
    opened,
    start: (env: Readonly<Record<string, string>>, isGroup = false) =>
      start({ backend, opened }, env, isGroup),
  };
}

/** A gateway with two workers, which serves the template `legacy` of a backend. `isGroup`: see `startGuarded`. */
async function start(
  { backend, opened }: { backend: Backend; opened: (() => unknown)[] },
  env: Readonly<Record<string, string>>,
  isGroup = false,
): Promise<Workers> {
  const harness = await startGuarded({
    env: { ...GUARDED, GATEWAY_SECRET_KEY: SECRET, GATEWAY_WORKERS: '2', ...env },
    isGroup,
  });
  opened.unshift(harness.remove);
  const { program, url, wire, admin } = harness;
  await program.complains(/worker 2 is ready/);
  const { headers } = await newKey(admin, 'clients');
  await register(admin, 'legacy', [{ id: 'one', endpoint: backend.url }]);
  const nodes = async (): Promise<{ id: string; state: string; address: string }[]> => {
    const answer = await ask(url, 'GET', '/gateway/nodes', { ...headers });
    return Object(JSON.parse(answer.body)).nodes;
  };
  const pidOf = (worker: number): number => {
    const lines = [...program.err.matchAll(/"pid":(\d+),"msg":"worker (\d) is ready"/g)];
    return Number(lines.findLast(([, , number]) => Number(number) === worker)?.[1]);
  };
  return {
    ...harness,
    pids: () => [pidOf(1), pidOf(2)],
    states: async () =>
      (await nodes())
        .filter(({ state }) => state !== 'ended')
        .map(({ id, state }) => `${id.split('/')[1]} ${state}`)
        .sort(),
    addresses: async () => (await nodes()).map(({ address }) => address),
    clients: (count) => {
      const one = () => LegacyClient.open(wire, '/mcp/legacy', { capabilities, headers });
      return Promise.all(Array.from({ length: count }, one));
    },
    metrics: async () => (await ask(url, 'GET', '/metrics', headers)).body,
    callTool: async (template) => {
      const call = JSON.stringify({ name: 'test_simple_text', arguments: {} });
      const { status, body } = await ask(url, 'POST', `/mcp/${template}/tools/call`, headers, call);
      return [
        status,
        status === 200
          ? toolText({ status, body: JSON.parse(body), headers: new Headers(), tookMs: 0 })
          : body,
      ];
    },
    call: async (sessionId) => {
      const sent = { ...headers, 'Mcp-Session-Id': sessionId };
      const params = { name: 'test_simple_text', arguments: {} };
      const message = { jsonrpc: '2.0', id: Math.random().toString(), method: 'tools/call', params };
      const { status, body } = await ask(url, 'POST', '/mcp/legacy', sent, JSON.stringify(message));
      const json = /^data: (.+)$/m.exec(body)?.[1] ?? body;
      return [status, status === 200 ? textOf(JSON.parse(json)) : body];
    },
  };
}

/** Over a new connection, which goes to the next worker. */
async function ask(
  url: string,
  method: string,
  path: string,
  credentials: Readonly<Record<string, string>>,
  body?: string,
): Promise<{ readonly status: number | undefined; readonly body: string }> {
  const headers = {
    ...credentials,
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
  };
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; body: string }>();
  const sent = request(`${url}${path}`, { method, headers, agent: false }, (response) => {
    text(response).then((read) => resolve({ status: response.statusCode, body: read }), reject);
  });
  sent.once('error', reject);
  sent.end(body);
  return promise;
}

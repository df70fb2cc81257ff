// Runs client commands against a real gateway in this process, over real HTTP.

import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import * as assert from 'uvu/assert';
import { main } from '../../../src/cli/main.ts';
import { loadConfig } from '../../../src/config/config.ts';
import type { Scope } from '../../../src/domain/accounts/account.ts';
import { type RunningServer, startServer } from '../../../src/server/server.ts';
import { initialize, MCP_TYPES } from '../../helpers/clients/mcp-messages.ts';
import type { Suite } from '../../helpers/suite.ts';
import { type RecordingOptions, recordingTerminal } from '../recording-terminal.ts';

/** The exit code and the output of a command. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** The texts beside a spinner; only of a command in this process. */
  readonly progress?: readonly string[];
}

export interface GatewayUnderTest {
  readonly server: RunningServer;
  readonly url: string;
  /** The secret of a new key with this permission. */
  newKey(permission: Scope): Promise<string>;
  /** Runs one command line against this gateway; with accounts, as an admin. The first text may hold several words. */
  run(line: string, ...words: string[]): Promise<Outcome>;
  /** The same with these options of the terminal. `env` is added to the environment. */
  runAt(options: RecordingOptions, line: string, ...words: string[]): Promise<Outcome>;
  close(): Promise<void>;
}

/** Password of `admin` where there are accounts. */
export const ADMIN_PASSWORD = 'correct horse';

/** Starts a gateway on a free port, in memory. `withAccounts`: callers need credentials; `more`: further flags. */
export async function startGateway({ withAccounts = false, more = {} } = {}): Promise<GatewayUnderTest> {
  const folder = tmpdir();
  const flags = {
    port: '0',
    host: '127.0.0.1',
    'grace-seconds': '1',
    database: 'memory://',
    auth: withAccounts,
    ...more,
  };
  const env = { GATEWAY_ADMIN_PASSWORD: ADMIN_PASSWORD };
  const server = await startServer(loadConfig({ flags, env, cwd: folder, readFile: () => undefined }));
  const url = String(server.urls[0]);
  const newKey = async (permission: Scope) =>
    (await server.auth.accounts.createApiKey({ name: 'operator', permissions: [permission] })).key;
  const credentials = withAccounts ? { STAGEDOOR_API_KEY: await newKey('admin') } : {};
  const runAt = (options: RecordingOptions, line: string, ...words: string[]) => {
    const all = { STAGEDOOR_URL: url, ...credentials, ...options.env };
    return runAtTerminal([...line.split(' '), ...words], { folder, ...options, env: all });
  };
  const run = (line: string, ...words: string[]) => runAt({}, line, ...words);
  return { server, url, newKey, run, runAt, close: () => server.close() };
}

/** A gateway for all tests of a suite. `prepare` runs before the first test. */
export function gatewayFor(
  test: Suite,
  options: Parameters<typeof startGateway>[0] = {},
  prepare: (gateway: GatewayUnderTest) => unknown = () => {},
): GatewayUnderTest {
  const gateway = {} as GatewayUnderTest; // whole before the first test
  test.before(async () => {
    Object.assign(gateway, await startGateway(options));
    await prepare(gateway);
  });
  test.after(() => gateway.close());
  return gateway;
}

/** An instance without tools. */
export const HANDLER = () => ({ tools: [] });

/** Starts HTTP servers, on free ports by default, which serve until the suite has ended; returns their URLs. */
export function serverFor(test: Suite): (listener: RequestListener, port?: number) => Promise<string> {
  const servers: Server[] = [];
  test.after(() => {
    for (const server of servers) server.close().closeAllConnections();
  });
  return async (listener, port = 0) => {
    const server = createServer(listener).listen(port, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
}

/** The output of a command; asserts exit code 0 and an empty standard error. */
export async function printed(running: Promise<Outcome>): Promise<string> {
  const { code, out, err } = await running;
  assert.equal([code, err], [0, '']);
  return out;
}

/** The standard error of a command; asserts this exit code and no output. */
export async function complaint(running: Promise<Outcome>, expected = 1): Promise<string> {
  const { code, out, err } = await running;
  assert.equal([code, out], [expected, ''], err);
  return err;
}

/** The cells of a table. */
export function cellsOf(table: string): string[][] {
  return table.split('\n').map((line) => line.split(/ {2,}/));
}

/** Runs one command line in this process. */
export function runCommand(
  words: readonly string[],
  env: Record<string, string> = {},
  folder: string = tmpdir(),
): Promise<Outcome> {
  return runAtTerminal(words, { env, folder });
}

/** The same with these options of the terminal. */
export async function runAtTerminal(words: readonly string[], options: RecordingOptions): Promise<Outcome> {
  const terminal = recordingTerminal(options);
  const code = await main(words, terminal);
  const { printed, complaints, progress } = terminal;
  return { code, out: printed.join('\n'), err: complaints.join('\n'), progress };
}

/** Opens a session of an MCP client with a template; it stays open. */
export async function openSession(url: string, template: string): Promise<void> {
  const request = { method: 'POST', headers: MCP_TYPES, body: JSON.stringify(initialize()) };
  const response = await fetch(`${url}/mcp/${template}`, request);
  await response.text();
  if (!response.headers.has('mcp-session-id')) throw new Error(`no session: ${response.status}`);
}

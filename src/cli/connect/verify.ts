// Proves that a snippet works: starts its program, or connects to its endpoint, as a client would, and lists the tools. Calls no tool.

import { listTools } from '../../actors/instances/session.ts';
import type { Connection } from '../../connect/kind.ts';
import { settlesWithin, systemClock } from '../../domain/clock.ts';
import { GatewayError, reasonOf } from '../../domain/errors.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import { definedFields } from '../../domain/json.ts';
import { LEGACY_VERSIONS } from '../../domain/mcp.ts';
import { TaskScheduler } from '../../domain/task-scheduler.ts';
import { lastWords } from '../../domain/text.ts';
import { VERSION } from '../../domain/version.ts';
import { openTransport } from '../../transports/index.ts';
import { Reaper } from '../../transports/stdio/process-group.ts';
import { type RequestCredentials, requestCredentials } from '../accounts/credentials.ts';
import { fields, listOf } from '../answers.ts';
import { CommandFailure } from '../failures.ts';
import { Remote } from '../remote.ts';
import type { Terminal } from '../terminal.ts';

export interface Verification {
  /** Undefined for a client of the HTTP API. */
  readonly server?: string;
  readonly protocolVersion?: string;
  readonly tools: readonly string[];
  /** From the start to the last page of tools. */
  readonly ms: number;
}

/** Longest time until the server is initialized, in ms: a program may have to be downloaded first. */
const VERIFY_MS = 60_000;
/** Longest wait for all pages of its tools together, in ms. */
const LIST_MS = 60_000;

const CLIENT = { name: 'stagedoor-connect', version: VERSION };
/** Of most clients: the era with sessions, and no capabilities. */
const PROFILE = { protocolVersion: LEGACY_VERSIONS[0], capabilities: {}, clientInfo: CLIENT };

/** Throws CommandFailure with the reason when the snippet does not work. `env` has the key as STAGEDOOR_API_KEY, or there is a login. */
export async function verify(
  connection: Connection,
  env: Terminal['env'],
  listMs = LIST_MS,
): Promise<Verification> {
  // The API says more about a refused key than the endpoint does; it has no list of all templates.
  if (connection.transport === 'http' && connection.endpoint !== `${connection.url}/mcp`)
    await verifyApi(connection, env);
  const beganAtMs = performance.now();
  const signal = new AbortController().signal;
  const open = openTransport(connection.transport, definitionOf(connection, env), {
    signal,
    clock: systemClock,
    handshakeTimeoutMs: VERIFY_MS,
    client: CLIENT,
    isDenied: () => false,
    handlers: new Map(),
    scheduler: new TaskScheduler(),
    reaper: new Reaper(), // for Ctrl-C
    history: { skipsProbe: true },
  });
  try {
    const transport = await open;
    try {
      const isHttp = connection.transport === 'http';
      const upstream = (isHttp && (await transport.openUpstream(PROFILE, signal))) || transport;
      const listed = listTools(upstream, systemClock);
      if (!(await settlesWithin(listed, listMs)))
        throw new CommandFailure(`its list of tools was not complete within ${listMs / 1000} s`);
      const tools = (await listed).map(({ name }) => name);
      const { serverInfo, protocolVersion } = upstream.peer;
      const ms = Math.round(performance.now() - beganAtMs);
      return { server: `${serverInfo.name} ${serverInfo.version}`.trim(), protocolVersion, tools, ms };
    } finally {
      await transport.close();
    }
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    // After the handshake the transport has them.
    const opened = await open.catch(() => undefined);
    const stderr = thrown.facts.stderr ?? opened?.diagnostics().stderr ?? [];
    const output = lastWords(stderr, 1).map((line) => `last output: ${line}`);
    throw new CommandFailure([reasonOf(thrown), ...output].join('; '), { cause: thrown });
  }
}

/** The same for a client of the HTTP API: lists the tools with one request. */
export async function verifyApi(connection: Connection, env: Terminal['env']): Promise<Verification> {
  const beganAtMs = performance.now();
  const { headers, prove } = credentialsOf(connection, env);
  const credentials = { headers, ...(prove && { prove }), name: 'its key', refused: (why: string) => why };
  const gateway = new Remote(connection.url, credentials, (_, work) => work(() => {}));
  const path = `/mcp/${connection.template}/tools/list`;
  const answer = await gateway.request(path, { timeoutMs: VERIFY_MS });
  const tools = listOf(fields(answer).tools).map(({ name }) => String(name));
  return { tools, ms: Math.round(performance.now() - beganAtMs) };
}

function definitionOf(connection: Connection, env: Terminal['env']): InstanceDefinition {
  const { template } = connection;
  const ids = { id: template, serverId: template, template };
  const common = { ...ids, weight: 1, metadata: {}, source: 'api', createdAt: '', updatedAt: '' } as const;
  if (connection.transport === 'http') {
    const { transport, endpoint } = connection;
    return {
      ...common,
      transport,
      endpoint,
      args: [],
      env: {},
      headers: credentialsOf(connection, env).headers,
    };
  }
  const { transport, command, args, env: own } = connection;
  // A client passes on its whole environment.
  const variables = definedFields({ ...env, ...own }) as Readonly<Record<string, string>>;
  return { ...common, transport, command, args, env: variables, headers: {} };
}

function credentialsOf(
  { key, url }: Pick<Connection, 'key' | 'url'>,
  env: Terminal['env'],
): Pick<RequestCredentials, 'headers' | 'prove'> {
  return key === undefined ? { headers: {} } : requestCredentials(url, env);
}

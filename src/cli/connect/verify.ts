// Proves that a snippet works: starts its program, or connects to its endpoint, as a client would, and lists the
// tools. Calls no tool.

import { listTools } from '../../actors/instances/instance-transport.ts';
import type { ConnectTarget, EndpointTarget } from '../../connect/connect-target.ts';
import { GatewayError, reasonOf } from '../../domain/errors/errors.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { definedFields } from '../../domain/json/json.ts';
import { LEGACY_VERSIONS } from '../../domain/mcp/mcp.ts';
import { lastWords } from '../../domain/text.ts';
import { settlesWithin, systemClock } from '../../domain/time/clock.ts';
import { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { VERSION } from '../../domain/version.ts';
import { Reaper } from '../../programs/reaper.ts';
import { loadTransport } from '../../transports/load-transport.ts';
import {
  type KeyHolder,
  type RequestCredentials,
  requestCredentials,
} from '../accounts/request-credentials.ts';
import { CommandFailure } from '../failures.ts';
import { fields, objectsOf } from '../remote/answers.ts';
import { Remote } from '../remote/remote.ts';

export interface Verification {
  /** The name of the server; undefined for a client of the HTTP API. */
  readonly server?: string;
  readonly protocolVersion?: string;
  readonly tools: readonly string[];
  /** The last step that was reached, when the tools were not listed. */
  readonly until?: string;
  /** The time from the start to the last page of tools, in ms. */
  readonly ms: number;
}

/** The longest time until the server is initialized, in ms: a program may have to be downloaded first. */
const VERIFY_MS = 60_000;
/** The longest wait for all pages of its tools together, in ms. */
const LIST_MS = 60_000;

const CLIENT = { name: 'stagedoor-connect', version: VERSION };
/** The profile that most clients send: the era with sessions, and no capabilities. */
const PROFILE = { protocolVersion: LEGACY_VERSIONS[0], capabilities: {}, clientInfo: CLIENT };

/**
 * Verifies a snippet. Throws CommandFailure with the reason when it does not work. `env` has the key as
 * STAGEDOOR_API_KEY, or there is a login.
 */
export async function verify(
  target: ConnectTarget,
  terminal: KeyHolder,
  listMs = LIST_MS,
): Promise<Verification> {
  // The API says more about a refused key than the endpoint does; it has no list of all templates.
  if (target.transport === 'http' && target.endpoint !== `${target.url}/mcp`)
    await verifyApi(target, terminal);
  return listedBy(definitionOf(target, terminal), listMs);
}

/** Connects as this definition says, and lists the tools. Throws CommandFailure. */
export async function listedBy(definition: InstanceDefinition, listMs = LIST_MS): Promise<Verification> {
  const beganAtMs = performance.now();
  const signal = new AbortController().signal;
  const open = loadTransport(definition.transport).then((openKind) =>
    openKind(definition, {
      signal,
      clock: systemClock,
      handshakeTimeoutMs: VERIFY_MS,
      client: CLIENT,
      network: { isDenied: () => false },
      handlers: new Map(),
      scheduler: new TaskScheduler(),
      programs: { reaper: new Reaper() }, // for Ctrl-C
      history: { skipsProbe: true },
    }),
  );
  try {
    const transport = await open;
    try {
      const isHttp = definition.transport === 'http';
      const conversation =
        (isHttp && (await transport.openConversation({ profile: PROFILE, signal }))) || transport;
      const listed = listTools(conversation, systemClock);
      if (!(await settlesWithin(listed, listMs, systemClock)))
        throw new CommandFailure(`its list of tools was not complete within ${listMs / 1000} s`);
      const tools = (await listed).map(({ name }) => name);
      const { serverInfo, protocolVersion } = conversation.handshake;
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

/** Verifies a client of the HTTP API: lists the tools with one request. */
export async function verifyApi(target: ConnectTarget, terminal: KeyHolder): Promise<Verification> {
  const beganAtMs = performance.now();
  const { headers, prove } = credentialsOf(target, terminal);
  const credentials = { headers, ...(prove && { prove }), name: 'its key', refused: (why: string) => why };
  const gateway = new Remote(target.url, credentials, (_, work) => work(() => {}));
  const path = `/mcp/${target.template}/tools/list`;
  const answer = await gateway.request(path, { timeoutMs: VERIFY_MS });
  const tools = objectsOf(fields(answer).tools).map(({ name }) => String(name));
  return { tools, ms: Math.round(performance.now() - beganAtMs) };
}

/** An instance at the endpoint, with these headers. */
export function endpointDefinition(
  { template, endpoint }: Pick<EndpointTarget, 'template' | 'endpoint'>,
  headers: Readonly<Record<string, string>>,
): InstanceDefinition {
  return { ...commonOf(template), transport: 'http', endpoint, args: [], env: {}, headers };
}

function commonOf(template: string) {
  const ids = { id: template, serverId: template, template };
  return { ...ids, weight: 1, metadata: {}, source: 'api', createdAt: '', updatedAt: '' } as const;
}

function definitionOf(target: ConnectTarget, terminal: KeyHolder): InstanceDefinition {
  if (target.transport === 'http') return endpointDefinition(target, credentialsOf(target, terminal).headers);
  const common = commonOf(target.template);
  const { transport, command, args, env: own } = target;
  // A client passes on its whole environment.
  const variables = definedFields({ ...terminal.env, ...own }) as Readonly<Record<string, string>>;
  return { ...common, transport, command, args, env: variables, headers: {} };
}

function credentialsOf(
  { key, url }: Pick<ConnectTarget, 'key' | 'url'>,
  terminal: KeyHolder,
): Pick<RequestCredentials, 'headers' | 'prove'> {
  return key === undefined ? { headers: {} } : requestCredentials(url, terminal);
}

// Transport to a program that speaks MCP on its standard input and output, and to the programs of the same instance that are dedicated
// to single clients (dedicated-programs.ts). The pipe is stdio-channel.ts, the handshake stdio-handshake.ts, the process child-process.ts.

import type { Observable } from 'rxjs';
import { ANONYMOUS } from '../../domain/account.ts';
import type { ClientProfile, ServerMessage } from '../../domain/client.ts';
import { backendUnavailable, openingCancelled } from '../../domain/error-catalogue.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { ClientInfo } from '../handshake.ts';
import type {
  Closed,
  OpenOptions,
  Transport,
  TransportFacts,
  TransportType,
  Upstream,
} from '../transport.ts';
import type { KillLadder } from './child-process.ts';
import { ChannelConversation } from './correlator.ts';
import { DedicatedPrograms } from './dedicated-programs.ts';
import { StdioChannel } from './stdio-channel.ts';
import { type OpenedProgram, openShared } from './stdio-handshake.ts';

/** The stdio row of the table, with the waits of LIMITS. */
export const stdio: TransportType = stdioWith({});

export interface StdioSettings {
  /** Waits between stdin end, SIGTERM and SIGKILL. */
  readonly ladder?: KillLadder;
  /** Longest wait for the answer to the probe for the modern era. Default PROBE_TIMEOUT_MS. */
  readonly probeTimeoutMs?: number;
}

/** A stdio transport type with other waits. */
export function stdioWith(settings: StdioSettings): TransportType {
  return { kind: 'stdio', open: (definition, options) => open(definition, options, settings) };
}

async function open(
  { command, args, workingDir, env, container }: InstanceDefinition,
  options: OpenOptions,
  { ladder, probeTimeoutMs }: StdioSettings,
): Promise<Transport> {
  if (command === undefined) throw backendUnavailable('no command is given', { delivered: 'no' });
  if (options.signal.aborted) throw openingCancelled();
  const program = { command, args, workingDir, env, container };
  const {
    client,
    handshakeTimeoutMs,
    room,
    scheduler,
    reaper,
    passEnv,
    runInContainer,
    memory = {},
    onStarted,
    answers,
  } = options;
  const starting = { ladder, reaper, passEnv, runInContainer };
  const start = () => {
    const channel = new StdioChannel(program, { ...starting, answers });
    onStarted?.(() => channel.facts());
    return channel;
  };
  const startedAtMs = performance.now();
  const opened = await openShared(start, { ...options, memory, probeTimeoutMs });
  const openingMs = performance.now() - startedAtMs;
  const startDedicated = () => new StdioChannel(program, { ...starting, answers, mayAsk: true });
  const known = { era: opened.peer.era, openingMs, memory, probeTimeoutMs };
  const dedicated = new DedicatedPrograms(startDedicated, {
    client,
    handshakeTimeoutMs,
    room,
    scheduler,
    ...known,
  });
  return new StdioTransport(opened, dedicated, client);
}

class StdioTransport implements Transport {
  readonly kind = 'stdio';
  readonly peer: Peer;
  readonly messages$: Observable<ServerMessage>;
  readonly closed$: Observable<Closed>;
  readonly #channel: OpenedProgram['channel'];
  readonly #client: ClientInfo;
  readonly #dedicated: DedicatedPrograms;
  /** The conversation in the process that all clients share. */
  readonly #shared: ChannelConversation;

  constructor({ channel, peer }: OpenedProgram, dedicated: DedicatedPrograms, client: ClientInfo) {
    this.peer = peer;
    this.#channel = channel;
    this.#client = client;
    this.#dedicated = dedicated;
    this.#shared = new ChannelConversation(channel, peer, client);
    this.messages$ = channel.messages$;
    this.closed$ = channel.closed$;
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return this.#shared.exchange(request);
  }

  notify(method: string, params: JsonObject): void {
    this.#shared.notify(method, params);
  }

  facts(): TransportFacts {
    return this.#channel.facts();
  }

  /**
   * The new conversation is independent. Its era is legacy if the program speaks that, else modern. The caller bounds the number of
   * programs.
   */
  async openUpstream(
    profile: ClientProfile,
    signal: AbortSignal,
    ownerId: string = ANONYMOUS.id,
  ): Promise<Upstream | undefined> {
    if (this.peer.era === 'bare') return undefined;
    if (signal.aborted) throw openingCancelled();
    const { channel, peer } = await this.#dedicated.open({ profile, ownerId, signal });
    return new ChannelConversation(channel, peer, this.#client, channel.facts().pid ?? undefined);
  }

  async close(): Promise<void> {
    await Promise.all([this.#shared.close(), this.#dedicated.close()]);
  }
}

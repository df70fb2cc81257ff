// Transport to a program that speaks MCP on its standard input and output, and to the programs that the instance dedicates to single
// clients (dedicated-programs.ts). The pipe is stdio-channel.ts, the handshake stdio-handshake.ts, the process child-process.ts.

import { ANONYMOUS } from '../../domain/account.ts';
import type { ClientProfile } from '../../domain/client.ts';
import { backendUnavailable, openingCancelled } from '../../domain/error-catalogue.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import type { HandshakeChannel, HandshakeOptions } from '../handshake.ts';
import type { OpenOptions, Transport, TransportType, Upstream } from '../transport.ts';
import type { KillLadder, Program } from './child-process.ts';
import { DedicatedPrograms, type DedicatedProgramsOptions } from './dedicated-programs.ts';
import { type ChannelOptions, StdioChannel } from './stdio-channel.ts';
import { openShared } from './stdio-handshake.ts';

export const stdio: TransportType = stdioWith({});

export interface StdioSettings {
  /** Waits between stdin end, SIGTERM and SIGKILL. */
  readonly ladder?: KillLadder;
  /** Longest wait for the answer to the probe for the modern era. Default PROBE_TIMEOUT_MS. */
  readonly probeTimeoutMs?: number;
}

export function stdioWith(settings: StdioSettings): TransportType {
  return { open: (definition, options) => open(definition, options, settings) };
}

async function open(
  { command, args, workingDir, env, container }: InstanceDefinition,
  options: OpenOptions,
  { ladder, probeTimeoutMs }: StdioSettings,
): Promise<Transport> {
  if (command === undefined) throw backendUnavailable('no command is given', { delivered: 'no' });
  if (options.signal.aborted) throw openingCancelled();
  const program = { command, args, workingDir, env, container };
  const { reaper, passEnv, user, runInContainer, onStarted, answers } = options;
  const starting = { ladder, reaper, passEnv, user, runInContainer, answers };
  const opening = { ...options, probeTimeoutMs };
  return openShared(() => {
    const transport = new StdioTransport(program, starting, opening);
    onStarted?.(() => transport.diagnostics());
    return transport;
  }, opening);
}

/** The program that all clients share. */
class StdioTransport extends StdioChannel implements Transport {
  readonly kind = 'stdio';
  readonly #startDedicated: () => StdioChannel;
  readonly #options: Omit<DedicatedProgramsOptions, 'era'>;
  #dedicated: DedicatedPrograms | undefined;

  constructor(program: Program, starting: ChannelOptions, options: Omit<DedicatedProgramsOptions, 'era'>) {
    super(program, starting);
    this.#startDedicated = () => new StdioChannel(program, { ...starting, isDedicated: true });
    this.#options = options;
  }

  override async open(options: HandshakeOptions, pipe: HandshakeChannel): Promise<void> {
    await super.open(options, pipe);
    const { era } = this.peer;
    this.#dedicated = new DedicatedPrograms(this.#startDedicated, { ...this.#options, era });
  }

  /** The new conversation is independent, and legacy if the program speaks that. The caller bounds their number. */
  async openUpstream(
    profile: ClientProfile,
    signal: AbortSignal,
    ownerId: string = ANONYMOUS.id,
  ): Promise<Upstream | undefined> {
    if (this.peer.era === 'bare') return undefined;
    if (signal.aborted) throw openingCancelled();
    return this.#dedicated?.open(profile, signal, ownerId);
  }

  override async close(): Promise<void> {
    await Promise.all([super.close(), this.#dedicated?.close()]);
  }
}

// Transport to a program that speaks MCP on its standard input and output, and to the programs that the instance
// dedicates to single clients, or to clients with equal extensions (dedicated-programs.ts). The pipe is
// stdio-channel.ts, the handshake stdio-handshake.ts, the program program-run.ts.

import { backendUnavailable, openingCancelled } from '../../domain/errors/backend-errors.ts';
import { runsProgram } from '../../domain/instances/transport-kinds.ts';
import type { Program } from '../../programs/child-process.ts';
import type { KillLadder } from '../../programs/program-run.ts';
import { leavesEra, type OpenOfKind, type OpenOptions } from '../open-options.ts';
import type { ConversationOpening, Transport } from '../transport.ts';
import { DedicatedPrograms } from './dedicated-programs.ts';
import { StdioChannel } from './stdio-channel.ts';
import { openShared } from './stdio-handshake.ts';

export interface StdioOptions extends OpenOptions {
  /** Waits between stdin end, SIGTERM and SIGKILL. */
  readonly ladder?: KillLadder;
  /** The longest wait for the answer to the probe for the modern era. Default: PROBE_TIMEOUT_MS. */
  readonly probeTimeoutMs?: number;
}

export const open: OpenOfKind = async (definition, options: StdioOptions) => {
  if (!runsProgram(definition)) throw backendUnavailable('no command is given', { delivered: 'no' });
  if (options.signal.aborted) throw openingCancelled();
  return openShared(() => {
    const transport = new StdioTransport(definition, options);
    options.onStarted?.(() => transport.diagnostics());
    return transport;
  }, options);
};

/** The program that all clients share. */
class StdioTransport extends StdioChannel implements Transport {
  readonly kind = 'stdio';
  readonly #options: StdioOptions;
  readonly #dedicated: DedicatedPrograms;

  constructor(program: Program, options: StdioOptions) {
    const ofProgram = { ...options, ...options.programs };
    super(program, ofProgram);
    this.#options = options;
    const start = (isDedicated: boolean) =>
      new StdioChannel(program, { ...ofProgram, isDedicated, isIndependent: true });
    this.#dedicated = new DedicatedPrograms(start, options);
  }

  /** The new conversation is independent, and legacy if the program speaks that. The caller bounds their number. */
  async openConversation(opening: ConversationOpening) {
    const { era } = this.handshake;
    if (era === 'bare') return undefined;
    return this.#dedicated.open({ ...opening, mayBeModern: era === 'modern' });
  }

  leaveEra(): boolean {
    return leavesEra(this.handshake.era, this.#options);
  }

  override async close(): Promise<void> {
    await Promise.all([super.close(), this.#dedicated.close()]);
  }
}

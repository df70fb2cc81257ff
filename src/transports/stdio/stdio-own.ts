// The programs that single clients of one instance have of their own: the handshake with each, and in whose era. When they
// start is warm-processes.ts's; what is said afterwards stdio.ts's.

import type { ClientProfile } from '../../domain/client.ts';
import type { Era, Peer } from '../../domain/mcp.ts';
import type { HandshakeOptions } from '../handshake.ts';
import { SingleFlight } from '../single-flight.ts';
import type { OpeningMemory, OpenOptions } from '../transport.ts';
import type { StdioChannel } from './stdio-channel.ts';
import {
  type OpenedProgram,
  openingStopped,
  PROBE_PATIENCE_MS,
  type Probe,
  shakeHandsOnPipe,
} from './stdio-handshake.ts';
import { WarmProcesses } from './warm-processes.ts';

export interface OwnProgramsOptions
  extends Pick<OpenOptions, 'client' | 'handshakeTimeoutMs' | 'room' | 'scheduler'> {
  /** In which the program that all share speaks. */
  readonly era: Era;
  /** How long that one took to open: one of a client may take as long before it hears anything. */
  readonly openingMs: number;
  readonly memory: OpeningMemory;
  /** Longest wait of a program that has started. Default PROBE_PATIENCE_MS. */
  readonly patienceMs?: number | undefined;
}

/** For whom a program is started. */
export interface OwnProgramOpening {
  readonly profile: ClientProfile;
  readonly ownerId: string;
  /** Ends the opening. */
  readonly signal: AbortSignal;
}

/** Those of one transport. */
export class OwnPrograms {
  readonly #options: OwnProgramsOptions;
  readonly #processes: WarmProcesses<StdioChannel>;
  /** In which era they speak: in the legacy one where they can, which one whose shared program is legacy does. */
  readonly #era: SingleFlight;

  constructor(start: () => StdioChannel, options: OwnProgramsOptions) {
    this.#options = options;
    const { handshakeTimeoutMs: patienceMs, room, scheduler } = options;
    this.#processes = new WarmProcesses(start, { patienceMs, room, scheduler });
    this.#era = new SingleFlight(options.era === 'legacy' || options.memory.ownEra !== undefined, scheduler);
  }

  /**
   * Starts one, or takes one that was started, and shakes hands when it is its turn. Rejects like `WarmProcesses.open`, and
   * with what the handshake fails of. Of a program of the modern era the first who comes finds out whether it speaks the
   * other one, too.
   */
  open({ profile, ownerId, signal }: OwnProgramOpening): Promise<OpenedProgram> {
    const turn = { ownerId, signal, calledOff: openingStopped };
    const greet = async (channel: StdioChannel) => ({
      channel,
      peer: await this.#shakeHands(channel, profile, signal),
    });
    return this.#era.run(turn, () => this.#processes.open({ ...turn, greet }));
  }

  /** Starts none after, and ends those that nobody has. Resolves when nothing is left of these. */
  close(): Promise<void> {
    return this.#processes.close();
  }

  async #shakeHands(channel: StdioChannel, profile: ClientProfile, signal: AbortSignal): Promise<Peer> {
    const { client, handshakeTimeoutMs, era, memory } = this.#options;
    const options = { client, profile, signal, handshakeTimeoutMs };
    if (era !== 'modern') return shakeHandsOnPipe(channel, options);
    const { first, probe } = this.#way();
    try {
      const peer = await shakeHandsOnPipe(channel, { ...options, mayBeModern: true, first }, probe);
      if (peer.era !== 'bare' && probe?.outcome !== 'late') memory.ownEra = peer.era;
      return peer;
    } catch (thrown) {
      if (!signal.aborted) memory.ownEra = undefined; // the next one may find it changed
      throw thrown;
    }
  }

  /** One that says nothing to `initialize` is waited for once. */
  #way(): { readonly first: HandshakeOptions['first']; readonly probe?: Probe } {
    const { memory, openingMs, patienceMs = PROBE_PATIENCE_MS } = this.#options;
    if (memory.ownEra !== undefined) return { first: memory.ownEra };
    return { first: 'legacyProbe', probe: { patienceMs: patienceMs + openingMs, outcome: 'unanswered' } };
  }
}

// The opening of a conversation with a program: the probe for its era, the handshake over its pipe, in time, and the end of
// the program when that fails. Who needs programs, and for whom, is stdio.ts's business; ADR 23 says why in this order.

import { backendUnavailable } from '../../domain/backend-errors.ts';
import { asGatewayError, type GatewayError } from '../../domain/errors.ts';
import { openingFailed } from '../../domain/failures.ts';
import type { Peer } from '../../domain/mcp.ts';
import { type HandshakeOptions, shakeHands } from '../handshake.ts';
import { isProbedNext, noteFailure, noteSuccess, type ProbeOutcome } from '../probe-memory.ts';
import type { OpeningMemory, OpenOptions } from '../transport.ts';
import type { StdioChannel } from './stdio-channel.ts';
import { StdioPipe } from './stdio-pipe.ts';

export interface StdioHandshakeOptions
  extends Pick<HandshakeOptions, 'client' | 'profile' | 'mayBeModern'>,
    Pick<OpenOptions, 'signal' | 'handshakeTimeoutMs'> {
  /** As in HandshakeOptions. Default: the legacy era. */
  readonly first?: HandshakeOptions['first'];
}

/** What opening the shared program needs. */
export interface SharedOpening extends StdioHandshakeOptions {
  readonly memory?: OpeningMemory | undefined;
  /** Default PROBE_PATIENCE_MS. */
  readonly patienceMs?: number | undefined;
}

/** How long the first answer of a program is waited for, and what became of that. */
export interface Probe {
  readonly patienceMs: number;
  outcome: ProbeOutcome;
}

/** A program that was started, and what is known of it. */
export interface OpenedProgram {
  readonly channel: StdioChannel;
  readonly peer: Peer;
}

/** Longest wait for the answer to the probe; half of the handshake's time if that is shorter. Then `initialize` is asked. */
export const PROBE_PATIENCE_MS = 3_000;

/**
 * A program that came up slowly answers the probe and what came after it at once, in any order: so long the one is waited for
 * after the other, to tell it from a program that leaves probes unanswered.
 */
const LATE_MS = 250;

/**
 * Starts the program that all clients share and finds out its era: the modern one when it offers it. A new program that ends
 * with the probe unanswered is started once more, within the same time, and not probed. What is learned goes to `memory`.
 * Rejects like `shakeHandsOnPipe`.
 */
export async function openShared(start: () => StdioChannel, options: SharedOpening): Promise<OpenedProgram> {
  const { memory = {}, patienceMs = PROBE_PATIENCE_MS } = options;
  const giveUpAt = performance.now() + options.handshakeTimeoutMs;
  const probe: Probe | undefined = isProbedNext(memory) ? { patienceMs, outcome: 'unanswered' } : undefined;
  const channel = start();
  const wasStarted = channel.facts().pid !== null;
  try {
    const first = probe === undefined ? 'legacy' : 'probe';
    const peer = await shakeHandsOnPipe(channel, { ...options, first }, probe);
    noteSuccess(memory, peer.era, probe?.outcome);
    return { channel, peer };
  } catch (thrown) {
    if (options.signal.aborted) throw thrown;
    const failed = { outcome: probe?.outcome, wasStarted, hasEnded: channel.hasFailed };
    const isAgain = noteFailure(memory, failed);
    const leftMs = giveUpAt - performance.now();
    if (!isAgain || leftMs <= 0) throw thrown;
    return openShared(start, { ...options, memory, handshakeTimeoutMs: leftMs });
  }
}

/**
 * Shakes hands with a program that was started and resolves with what was learned. With a `probe` it does not have all the
 * time for its first answer. Rejects with BACKEND_UNAVAILABLE, `delivered: 'no'`, with the tail of stderr; the program is stopped then.
 */
export async function shakeHandsOnPipe(
  channel: StdioChannel,
  { signal, handshakeTimeoutMs, first = 'legacy', ...handshake }: StdioHandshakeOptions,
  probe?: Probe,
): Promise<Peer> {
  const pipe = new StdioPipe(channel, probe && Math.min(probe.patienceMs, handshakeTimeoutMs / 2));
  const limit = limitOpening(signal, handshakeTimeoutMs, () => pipe.lack);
  try {
    const peer = await Promise.race([shakeHands(pipe, { ...handshake, first }), limit.passed]);
    await pipe.settled(LATE_MS);
    return peer;
  } catch (error) {
    await channel.close();
    throw openingFailed(asGatewayError(error), channel.facts().stderr);
  } finally {
    limit.forget();
    if (probe !== undefined) probe.outcome = pipe.outcome ?? probe.outcome;
    pipe.forgetProbe();
  }
}

/** The failure of an opening that nobody wants any more. */
export function openingStopped(): GatewayError {
  return backendUnavailable('its start was called off', { delivered: 'no' });
}

function limitOpening(signal: AbortSignal, timeoutMs: number, lack: () => string | undefined) {
  const { promise: passed, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(openingStopped());
  const giveUp = (): void => {
    const reason = lack() ?? `it did not finish the handshake within ${timeoutMs / 1000} s`;
    reject(backendUnavailable(reason, { delivered: 'no' }));
  };
  if (signal.aborted) stop();
  const timer = setTimeout(giveUp, timeoutMs);
  signal.addEventListener('abort', stop);
  const forget = (): void => {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  };
  return { passed, forget };
}

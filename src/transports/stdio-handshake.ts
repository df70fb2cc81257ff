// The opening of a conversation with a program: the probe for its era, the handshake over its pipe, in time, and the end of
// the program when that fails. Who needs programs, and for whom, is stdio.ts's business; ADR 23 says why in this order.

import { asGatewayError, backendUnavailable, type GatewayError } from '../domain/errors.ts';
import { openingFailed } from '../domain/failures.ts';
import type { Peer } from '../domain/mcp.ts';
import { type HandshakeOptions, shakeHands } from './handshake.ts';
import type { StdioChannel } from './stdio-channel.ts';
import { StdioPipe } from './stdio-pipe.ts';
import type { OpeningMemory, OpenOptions } from './transport.ts';

export type StdioHandshakeOptions = Pick<HandshakeOptions, 'client' | 'profile' | 'mayBeModern'> &
  Pick<OpenOptions, 'signal' | 'handshakeTimeoutMs'>;

/** What opening the shared program needs. */
export interface SharedOpening extends StdioHandshakeOptions {
  readonly memory?: OpeningMemory | undefined;
  /** Default PROBE_PATIENCE_MS. */
  readonly patienceMs?: number | undefined;
}

/** How a program is probed, and where what comes of it is kept. */
interface Probe {
  readonly memory: OpeningMemory;
  readonly patienceMs: number;
}

/** A program that was started, and what is known of it. */
export interface OpenedProgram {
  readonly channel: StdioChannel;
  readonly peer: Peer;
}

/** Longest wait for the answer to the probe; half of the handshake's time if that is shorter. Then `initialize` is asked. */
export const PROBE_PATIENCE_MS = 3_000;

/**
 * Starts the program that all clients share and finds out its era: the modern one when it offers it. A program that ends
 * with the probe unanswered is started once more, within the same time, and not probed. What is learned about probing it
 * goes to `memory`. Rejects like `shakeHandsOnPipe`.
 */
export async function openShared(start: () => StdioChannel, options: SharedOpening): Promise<OpenedProgram> {
  const { memory = {}, patienceMs = PROBE_PATIENCE_MS } = options;
  const giveUpAt = performance.now() + options.handshakeTimeoutMs;
  const isProbed = memory.isProbeUnanswered !== true;
  const channel = start();
  const wasStarted = channel.facts().pid !== null;
  try {
    return {
      channel,
      peer: await shakeHandsOnPipe(channel, options, isProbed ? { memory, patienceMs } : undefined),
    };
  } catch (thrown) {
    if (options.signal.aborted) throw thrown;
    // Whatever it fails of now, the next opening may find it changed.
    if (!isProbed) memory.isProbeUnanswered = false;
    const mayBeProbe = isProbed && memory.isProbeUnanswered && wasStarted && channel.hasFailed;
    const leftMs = giveUpAt - performance.now();
    if (!mayBeProbe || leftMs <= 0) throw thrown;
    return openShared(start, { ...options, memory, handshakeTimeoutMs: leftMs });
  }
}

/**
 * Shakes hands with a program that was started and resolves with what was learned. With a `probe` it is asked for the modern
 * era first. Rejects with BACKEND_UNAVAILABLE, `delivered: 'no'`, with the tail of stderr; the program is stopped then.
 */
export async function shakeHandsOnPipe(
  channel: StdioChannel,
  { signal, handshakeTimeoutMs, ...handshake }: StdioHandshakeOptions,
  probe?: Probe,
): Promise<Peer> {
  const pipe = new StdioPipe(channel, probe && Math.min(probe.patienceMs, handshakeTimeoutMs / 2));
  const limit = limitOpening(signal, handshakeTimeoutMs, () => pipe.lack);
  try {
    const first = probe === undefined ? 'legacy' : 'probe';
    return await Promise.race([shakeHands(pipe, { ...handshake, first }), limit.passed]);
  } catch (error) {
    await channel.close();
    throw openingFailed(asGatewayError(error), channel.facts().stderr);
  } finally {
    limit.forget();
    if (probe !== undefined && !signal.aborted) probe.memory.isProbeUnanswered = pipe.isProbeUnanswered;
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

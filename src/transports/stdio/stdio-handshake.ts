// Opens a conversation with a program: the probe for its era, the handshake, and the end of the program when that
// fails. It also decides whether an opening begins with the probe, and whether a program that the probe may have
// ended is started again. stdio.ts decides which programs are needed; ADR 10 explains the order.

import {
  catchError,
  filter,
  firstValueFrom,
  map,
  of,
  ReplaySubject,
  race,
  type Subscription,
  tap,
} from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import { isFinal } from '../../domain/calls/exchange-event.ts';
import { asGatewayError, openingFailed } from '../../domain/errors/errors.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { Channel, ChannelOpening } from '../channel.ts';
import type { HandshakeAnswer, HandshakeChannel } from '../handshake.ts';
import type { OpenOptions } from '../open-options.ts';
import type { StdioChannel } from './stdio-channel.ts';

type PipeOpening = Omit<ChannelOpening, 'first'>;

interface Probe {
  readonly timeoutMs: number;
  /** True once the probe has an answer, even one after `timeoutMs`. */
  isAnswered: boolean;
}

/** The longest wait for the answer to the probe; at most half of the handshake's time. Then `initialize` is sent. */
const PROBE_TIMEOUT_MS = 3_000;

/**
 * Starts the program that all clients share and determines its era: modern if it speaks that. If the first opening of an
 * instance fails because the program exits instead of answering the probe, the program is started once more, within the same
 * time, without a probe. Throws like `openOnPipe`.
 */
export async function openShared<C extends StdioChannel>(
  start: () => C,
  options: PipeOpening & Pick<OpenOptions, 'history'> & { readonly probeTimeoutMs?: number | undefined },
): Promise<C> {
  const { history, handshakeTimeoutMs, probeTimeoutMs = PROBE_TIMEOUT_MS, clock } = options;
  const giveUpAt = clock.now() + handshakeTimeoutMs;
  const timeoutMs = Math.min(probeTimeoutMs, handshakeTimeoutMs / 2);
  const isProbed = options.era === undefined && !history.skipsProbe && !history.prefersLegacy;
  const probe: Probe | undefined = isProbed ? { timeoutMs, isAnswered: false } : undefined;
  const channel = start();
  try {
    await openOnPipe(channel, options, probe);
    history.skipsProbe = probe?.isAnswered ? undefined : true;
    return channel;
  } catch (thrown) {
    if (options.signal.aborted || !channel.wasStarted) throw thrown;
    const isFirstFailure = history.skipsProbe === undefined;
    // While all openings fail, every other one begins with the probe.
    history.skipsProbe = probe !== undefined;
    const leftMs = giveUpAt - clock.now();
    const mayHaveEndedIt = isFirstFailure && probe?.isAnswered === false && channel.hasFailed;
    if (!mayHaveEndedIt || leftMs <= 0) throw thrown;
    return openShared(start, { ...options, handshakeTimeoutMs: leftMs });
  }
}

/**
 * Opens the channel of a program, the modern era first when there is a `probe`. Throws after the program was stopped, with its
 * last lines of stderr.
 */
export async function openOnPipe(channel: Channel, options: PipeOpening, probe?: Probe): Promise<void> {
  const first = probe === undefined ? 'legacy' : 'modern';
  const pipe = probe && probing(channel, probe, options.clock);
  try {
    await channel.open({ ...options, first }, pipe);
  } catch (error) {
    throw openingFailed(asGatewayError(error), channel.diagnostics().stderr);
  } finally {
    pipe?.cancelProbe();
  }
}

/** The channel of a handshake whose first request is a probe for an era, with its own timeout. */
function probing(channel: Channel, probe: Probe, clock: Clock): HandshakeChannel & { cancelProbe(): void } {
  const answer$ = new ReplaySubject<HandshakeAnswer>(1);
  let sent: Subscription | undefined;

  function ask(request: ExchangeRequest): Promise<HandshakeAnswer> {
    const nothing: HandshakeAnswer = { kind: 'none', detail: `it did not answer ${request.method}` };
    const answered$ = channel.exchange(request).pipe(
      filter(isFinal),
      // An unusable answer counts as none; only the end of the program fails the handshake.
      catchError((thrown) => {
        if (!channel.isUsable) throw thrown;
        return of(nothing);
      }),
      tap(() => {
        probe.isAnswered = true;
      }),
    );
    sent = answered$.subscribe(answer$);
    const late$ = timer$(clock, probe.timeoutMs).pipe(map(() => nothing));
    return firstValueFrom(race(answer$, late$));
  }

  return {
    request: (request) => (sent === undefined ? ask(request) : channel.request(request)),
    initialized: () => channel.initialized(),
    /**
     * Called at the end of the handshake: a program that does not know the probe may not accept a cancellation before
     * `initialize`.
     */
    cancelProbe: () => sent?.unsubscribe(),
  };
}

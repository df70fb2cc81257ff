// One conversation with a legacy backend on behalf of clients without a session, all of one owner: from its opening until
// nobody has used it for a while. Who may use it, and how many there are, is stateless-pool.ts.

import {
  concat,
  filter,
  lastValueFrom,
  NEVER,
  type Observable,
  of,
  takeUntil,
  tap,
  throwError,
  timeout,
} from 'rxjs';
import { backendTimeout } from '../../domain/backend-errors.ts';
import type { Clock } from '../../domain/clock.ts';
import { type ExchangeEvent, type ExchangeRequest, type FinalEvent, isFinal } from '../../domain/exchange.ts';
import { LIMITS } from '../../domain/limits.ts';
import { includesLevel } from '../../domain/log-levels.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { SharedConversation } from '../sharing/shared-subscriptions.ts';
import { NO_SUBSCRIBER, StatelessUpstream } from './stateless-upstream.ts';

export interface StatelessConversationInput {
  /** Equal for those who may use the same conversation. */
  readonly key: string;
  readonly ownerId: string;
  /** True when only one call at a time may use it. */
  readonly isExclusive: boolean;
  /** True when the backend may say something beside its calls that one of them is to hear. */
  readonly isHeard: boolean;
  readonly open: (signal: AbortSignal) => Promise<Upstream>;
  /** Told once that it takes nobody any more, with the promise of its end. */
  readonly onRetired: (gone: Promise<void>) => void;
}

/** Longest wait for the answer to `logging/setLevel`, in ms; the call goes on without. */
const LEVEL_MS = 5_000;

export class StatelessConversation {
  readonly key: string;
  readonly ownerId: string;
  readonly isExclusive: boolean;
  /** Rejects like InstanceRef.openUpstream. */
  readonly opened: Promise<Upstream>;
  readonly #clock: Clock;
  readonly #onRetired: (gone: Promise<void>) => void;
  readonly #opening = new AbortController();
  readonly #gone = Promise.withResolvers<void>();
  #upstream: Upstream | undefined;
  #shared: SharedConversation | undefined;
  #users = 0;
  #usedAtMs: number;
  #isRetired = false;
  #disarm: () => void;
  #level: string | undefined;
  #levelling: Promise<void> | undefined;

  constructor(clock: Clock, input: StatelessConversationInput) {
    const { key, ownerId, isExclusive, isHeard, open, onRetired } = input;
    this.key = key;
    this.ownerId = ownerId;
    this.isExclusive = isExclusive;
    this.#clock = clock;
    this.#onRetired = onRetired;
    this.#usedAtMs = clock.now();
    this.opened = open(this.#opening.signal).then((upstream) => this.#begin(upstream, isHeard));
    this.opened.catch(() => this.retire());
    this.#disarm = this.#arm(LIMITS.guestIdleMs);
  }

  /** Undefined until it is open. */
  get upstream(): Upstream | undefined {
    return this.#upstream;
  }
  /** For requests of the gateway itself; undefined until it is open. */
  get shared(): SharedConversation | undefined {
    return this.#shared;
  }
  get isIdle(): boolean {
    return this.#users === 0;
  }
  /** True when one more call may use it. */
  get isFree(): boolean {
    return !this.#isRetired && (!this.isExclusive || this.isIdle);
  }
  /** When it was last used, in ms of the clock. */
  get usedAtMs(): number {
    return this.#usedAtMs;
  }

  take(): void {
    this.#users += 1;
  }

  giveBack(): void {
    this.#users -= 1;
    this.#usedAtMs = this.#clock.now();
    if (this.#isRetired && this.isIdle) void this.#close();
  }

  /** Takes nobody any more; ends as soon as nobody uses it. Idempotent. */
  retire(): void {
    if (this.#isRetired) return;
    this.#isRetired = true;
    this.#disarm();
    this.#onRetired(this.#gone.promise);
    if (this.isIdle) void this.#close();
  }

  /** Ends it at once, its calls with it. Resolves when nothing is left of it, and never rejects. */
  close(): Promise<void> {
    this.retire();
    void this.#close();
    return this.#gone.promise;
  }

  /**
   * Makes sure that the backend writes log lines of that level. A promise, which never rejects, while it has to be told
   * so; undefined when there is nothing to wait for. The level is never raised again: other calls may have asked for more.
   */
  wantLevel(level: string): Promise<void> | undefined {
    if (this.#upstream?.peer.capabilities.logging === undefined) return undefined;
    if (this.#level !== undefined && includesLevel(this.#level, level)) return this.#levelling;
    this.#level = level;
    const levelling: Promise<void> = this.ask({ method: 'logging/setLevel', params: { level } }, LEVEL_MS)
      .then(
        () => undefined,
        () => undefined, // the call is worth more than its log lines
      )
      .finally(() => {
        if (this.#levelling === levelling) this.#levelling = undefined;
      });
    this.#levelling = levelling;
    return levelling;
  }

  /** A request of the gateway's own in here. Rejects with BACKEND_TIMEOUT, or like the exchange. */
  async ask(request: ExchangeRequest, timeoutMs: number): Promise<FinalEvent> {
    await this.opened;
    const { shared } = this;
    return lastValueFrom(
      (shared?.exchange(request) ?? NEVER).pipe(
        filter(isFinal),
        timeout({ first: timeoutMs, with: () => throwError(() => backendTimeout(timeoutMs)) }),
      ),
    );
  }

  #begin(raw: Upstream, isHeard: boolean): Upstream {
    const upstream = isHeard ? new StatelessUpstream(raw) : raw;
    this.#upstream = upstream;
    this.#shared = {
      peer: raw.peer,
      state$: concat(of('open'), NEVER).pipe(takeUntil(raw.closed$)),
      exchange: (request) => ownExchange(raw, request),
    };
    raw.closed$.subscribe({
      next: () => this.retire(),
      error: () => this.retire(),
    });
    return upstream;
  }

  /** Aborting ends an opening; one that succeeds all the same is closed behind it. */
  async #close(): Promise<void> {
    if (this.#opening.signal.aborted) return;
    this.#opening.abort();
    try {
      const upstream = await this.opened;
      await upstream.close();
    } catch {
      // It was never open, or there is nobody left who could close it better.
    }
    this.#gone.resolve();
  }

  /** One timer per conversation: when it rings and somebody used it meanwhile, it is set again. */
  #arm(waitMs: number): () => void {
    return this.#clock.alarm(waitMs, () => {
      const idleMs = this.isIdle ? this.#clock.now() - this.#usedAtMs : 0;
      if (idleMs >= LIMITS.guestIdleMs) this.retire();
      else this.#disarm = this.#arm(LIMITS.guestIdleMs - idleMs);
    });
  }
}

/** A request of the gateway itself: what the backend asks in the middle of it is no client's to answer. */
function ownExchange(upstream: Upstream, request: ExchangeRequest): Observable<ExchangeEvent> {
  return upstream.exchange(request).pipe(
    tap((event) => {
      if (event.kind === 'request') event.answer(NO_SUBSCRIBER);
    }),
  );
}

// The newest events of a gateway, for `GET /events`: one ring buffer for all readers.

import { Observable, type Subscriber } from 'rxjs';
import type { Principal } from '../../domain/accounts/principal.ts';
import { tooMany } from '../../domain/errors/request-errors.ts';
import { EVENTS, type GatewayEvent, writtenFields } from '../../domain/events/events.ts';
import { shareOf, UserShares } from '../../domain/memory/user-shares.ts';
import { OPAQUE_NUMBERS, OpaqueNumbers } from '../../domain/opaque-numbers.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { HTTP_LIMITS } from '../http-limits.ts';
import type { StreamEvent, StreamReader } from '../replies/reply.ts';

/** The fields by which events are selected. */
export interface SelectableEvent {
  readonly type: string;
  readonly template?: string;
  readonly principal?: string;
  /** Name at the server. */
  readonly tool?: string | undefined;
  readonly view?: string | undefined;
  readonly alias?: string;
  /** The id of the other node whose event it is. */
  readonly node?: string;
}

/** An event of another node, with the id and the text that it has there. */
export interface PeerEvent extends SelectableEvent {
  readonly node: string;
  readonly id: string;
  readonly text: string;
}

export interface ReadOptions {
  readonly owner: Pick<Principal, 'id'>;
  /** True when the reader may know how many events all callers cause. */
  readonly seesAll: boolean;
  readonly types?: ReadonlySet<string> | undefined;
  readonly isSelected: (event: SelectableEvent) => boolean;
  /** True when an unknown number of events of other nodes may be missing: reading begins with `missed`. */
  readonly isPartial?: boolean;
  /** Id of the last event that was read. Default: none; reading begins with the oldest kept event. */
  readonly after?: string | undefined;
  readonly isFollowing: boolean;
}

export interface EventRate {
  /** The shortest time between two writes to a reader that follows, in ms. The first event after a pause is not delayed. */
  readonly intervalMs: number;
  /** Events that all readers together get; each that waits for some has an equal part, and may save up as much as is kept. */
  readonly perSecond: number;
}

const RATE: EventRate = { intervalMs: HTTP_LIMITS.eventIntervalMs, perSecond: HTTP_LIMITS.eventsPerSecond };

/**
 * The ring of recent events, and its readers. An event visits only the readers that follow its type; a reader keeps the
 * numbers of its unread events. The events stay in the ring, so a slow reader loses the oldest ones. Events in quick
 * succession are written together, and all readers share one rate, so that readers cannot slow down a busy gateway. The
 * route decides which events a caller may read.
 */
export class RecentEvents {
  readonly #clock: Clock;
  readonly #size: number;
  readonly #ring: (GatewayEvent | PeerEvent | undefined)[];
  /** The events as text, each made for the first reader that gets it. */
  readonly #texts: (string | undefined)[];
  /** Prefix of every id: ids of another run of the gateway do not match. */
  readonly #run = crypto.randomUUID().slice(0, 8);
  /** The numbers of events and calls, which include those of other callers. */
  readonly #opaque = new OpaqueNumbers();
  readonly #readings = new Set<EventReading>();
  readonly #shares = new UserShares(
    HTTP_LIMITS.eventStreams,
    shareOf(HTTP_LIMITS.eventStreams, HTTP_LIMITS.eventStreamShare),
  );
  readonly #followers = new Map<string, Set<EventReading>>(
    Object.keys(EVENTS).map((name) => [name, new Set<EventReading>()]),
  );
  #next = 0;
  readonly #rate: EventRate;
  #isWakeDue = false;
  #wokeAtMs = 0;
  /** Readers with unread events: idle ones take no part of the rate. */
  #waiting = 0;
  #isOver = false;

  /** Subscribes until the gateway is closed, when the events complete. */
  constructor(
    events$: Observable<GatewayEvent>,
    clock: Clock,
    size: number = HTTP_LIMITS.keptEvents,
    rate = RATE,
  ) {
    this.#clock = clock;
    this.#rate = rate;
    this.#size = size;
    this.#ring = new Array(size);
    this.#texts = new Array(size);
    events$.subscribe({
      next: (event) => this.#keep(event),
      complete: () => {
        this.#isOver = true;
        this.#wake();
      },
    });
  }

  /**
   * Cold: the selected kept events, each with its id, then new ones until the gateway is closed. Events that a reader missed,
   * because it was too slow or reconnected too late, become one event `missed`. It has their number, unless the reader came
   * too late and does not see all. Errors with QUEUE_FULL beyond HTTP_LIMITS.eventStreams, or the share of the owner.
   */
  read(
    { owner, seesAll, types, isSelected, isPartial = false, after, isFollowing }: ReadOptions,
    reader: StreamReader,
  ): Observable<StreamEvent> {
    return new Observable((subscriber) => {
      const exceeded = this.#shares.exceededBy(owner.id);
      if (exceeded !== undefined) return subscriber.error(tooMany('open event streams', exceeded));
      this.#shares.add(owner.id);
      subscriber.add(() => this.#shares.release(owner.id));
      const { start, missed } = this.#startAfter(after);
      const reading: EventReading = {
        isSelected,
        reader,
        subscriber,
        isFollowing,
        unread: this.#selectedFrom(start, types, isSelected),
        missed: missed + Number(isPartial),
        isCountHidden: isPartial || (missed > 0 && !seesAll),
        allowance: this.#size,
        refilledAtMs: this.#clock.now(),
      };
      this.#readings.add(reading);
      subscriber.add(() => this.#readings.delete(reading));
      if (isFollowing) subscriber.add(this.#follow(reading, types));
      subscriber.add(reader.onCaughtUp(() => this.#emit(reading)));
      this.#emit(reading);
    });
  }

  /** Adds an event of another node. */
  add(event: PeerEvent): void {
    this.#keep(event);
  }

  /** Notes that an unknown number of events of another node are lost. */
  miss(): void {
    for (const reading of this.#readings) {
      if (!reading.isFollowing) continue;
      reading.missed += 1;
      reading.isCountHidden = true;
      this.#wakeSoon();
    }
  }

  /** True when an event of this run has this id. */
  isOwnId(id: string): boolean {
    return id.startsWith(`${this.#run}-`);
  }

  #selectedFrom(start: number, types: ReadOptions['types'], isSelected: ReadOptions['isSelected']): number[] {
    const numbers: number[] = [];
    for (let number = start; number < this.#next; number += 1) {
      const event = this.#ring[number % this.#size];
      if (event === undefined || types?.has(event.type) === false) continue;
      if (isSelected(event)) numbers.push(number);
    }
    return numbers;
  }

  #follow(reading: EventReading, types: ReadOptions['types']): () => void {
    const followed = [...this.#followers].flatMap(([type, readings]) =>
      types?.has(type) === false ? [] : [readings],
    );
    for (const readings of followed) readings.add(reading);
    return () => {
      for (const readings of followed) readings.delete(reading);
    };
  }

  /** Called twice per call. While no reader follows calls, it costs a look-up and a write. */
  #keep(event: GatewayEvent | PeerEvent): void {
    const slot = this.#next % this.#size;
    this.#ring[slot] = event;
    this.#texts[slot] = undefined;
    this.#next += 1;
    const followers = this.#followers.get(event.type);
    if (followers !== undefined && followers.size > 0) this.#notify(followers, event);
  }

  #notify(followers: ReadonlySet<EventReading>, event: SelectableEvent): void {
    for (const reading of followers) {
      if (!reading.isSelected(event)) continue;
      reading.unread.push(this.#next - 1);
      if (reading.unread.length > 2 * this.#size) this.#skipOverwritten(reading);
      this.#wakeSoon();
    }
  }

  /** Counts the events that its client was too slow for. */
  #skipOverwritten(reading: EventReading): void {
    const { unread } = reading;
    const oldest = this.#next - this.#size;
    const first = unread[0];
    if (first === undefined || first >= oldest) return;
    const found = unread.findIndex((number) => number >= oldest);
    const count = found < 0 ? unread.length : found;
    unread.splice(0, count);
    reading.missed += count;
  }

  /** Deferred: a call must not wait for the serialization of events. */
  #wakeSoon(): void {
    if (this.#isWakeDue) return;
    this.#isWakeDue = true;
    const waitMs = this.#wokeAtMs + this.#rate.intervalMs - this.#clock.now();
    if (waitMs > 0) this.#clock.background.alarm(waitMs, () => this.#wake());
    else setImmediate(() => this.#wake());
  }

  #wake(): void {
    this.#isWakeDue = false;
    this.#wokeAtMs = this.#clock.now();
    this.#waiting = 0;
    for (const { unread } of this.#readings) if (unread.length > 0) this.#waiting += 1;
    for (const reading of this.#readings) this.#emit(reading);
  }

  #emit(reading: EventReading): void {
    this.#refill(reading);
    this.#skipOverwritten(reading);
    let before: number;
    do {
      before = reading.unread.length;
      reading.reader.together(() => this.#emitAllowed(reading));
    } while (reading.unread.length < before && !reading.reader.isBehind);
    if (reading.allowance < 1 && (reading.unread.length > 0 || reading.missed > 0)) this.#wakeSoon();
  }

  #refill(reading: EventReading): void {
    const now = this.#clock.now();
    const part = this.#rate.perSecond / Math.max(1, this.#waiting);
    const gained = ((now - reading.refilledAtMs) / 1_000) * part;
    reading.allowance = Math.min(this.#size, reading.allowance + gained);
    reading.refilledAtMs = now;
  }

  /** Emits as many events as its client accepts and its part of the rate allows. */
  #emitAllowed(reading: EventReading): void {
    const { subscriber, reader, unread } = reading;
    const mayEmit = (): boolean => !subscriber.closed && !reader.isBehind && reading.allowance >= 1;
    if (reading.missed > 0 && mayEmit()) {
      const count = reading.isCountHidden ? {} : { count: reading.missed };
      subscriber.next({ name: 'missed', data: JSON.stringify({ type: 'missed', ...count }) });
      reading.missed = 0;
      reading.isCountHidden = false;
    }
    let count = 0;
    for (const number of unread) {
      if (!mayEmit()) break;
      count += 1;
      reading.allowance -= 1;
      this.#emitEvent(number, subscriber);
    }
    unread.splice(0, count);
    const isAtEnd = unread.length === 0 && reading.missed === 0;
    if (isAtEnd && (this.#isOver || !reading.isFollowing)) subscriber.complete();
  }

  #emitEvent(number: number, subscriber: Subscriber<StreamEvent>): void {
    const slot = number % this.#size;
    const event = this.#ring[slot];
    if (event === undefined) return;
    if ('node' in event) {
      subscriber.next({ name: event.type, id: event.id, data: event.text });
      return;
    }
    this.#texts[slot] ??= textOf('call' in event ? { ...event, call: this.#opaque.hide(event.call) } : event);
    const id = `${this.#run}-${this.#opaque.hide(number)}`;
    subscriber.next({ name: event.type, id, data: this.#texts[slot] });
  }

  /** The position at which reading begins, and the number of events since `after` that are no longer kept. */
  #startAfter(after: string | undefined): { readonly start: number; readonly missed: number } {
    const oldest = Math.max(0, this.#next - this.#size);
    const [, run, hidden] = /^([0-9a-f]{8})-(\d{1,15})$/.exec(after ?? '') ?? [];
    if (run !== this.#run || Number(hidden) >= OPAQUE_NUMBERS)
      return { start: this.#afterPeerEvent(after) ?? oldest, missed: 0 };
    const wanted = Math.min(this.#opaque.reveal(Number(hidden)) + 1, this.#next);
    const start = Math.max(wanted, oldest);
    return { start, missed: start - wanted };
  }

  /** The number after the kept event of another node that has this id. */
  #afterPeerEvent(id: string | undefined): number | undefined {
    for (let number = Math.max(0, this.#next - this.#size); number < this.#next; number += 1) {
      const event = this.#ring[number % this.#size];
      if (event !== undefined && 'node' in event && event.id === id) return number + 1;
    }
    return undefined;
  }
}

interface EventReading {
  readonly isSelected: ReadOptions['isSelected'];
  readonly reader: StreamReader;
  readonly subscriber: Subscriber<StreamEvent>;
  readonly isFollowing: boolean;
  /** Numbers of its selected unread events, oldest first. */
  readonly unread: number[];
  /** Selected events that were overwritten since the last `missed`. */
  missed: number;
  /** True when the number includes events of other callers. */
  isCountHidden: boolean;
  allowance: number;
  refilledAtMs: number;
}

function textOf({ type, atMs, ...fields }: GatewayEvent): string {
  return JSON.stringify({ type, at: new Date(atMs).toISOString(), ...writtenFields(fields) });
}

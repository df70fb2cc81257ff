// The newest events of a gateway, for `GET /events`: one ring buffer for all readers. A reader takes the next events when its
// client has read the previous ones, so a slow reader buffers nothing and loses the oldest events. What comes in quick succession
// is written together, and all readers share one rate: following is never what a busy gateway is busy with. The route decides
// which events a caller may read.

import { Observable, type Subscriber } from 'rxjs';
import type { GatewayEvent } from '../../domain/events.ts';
import { HTTP_LIMITS } from '../limits.ts';
import type { StreamEvent, StreamReader } from '../reply.ts';

export interface ReadOptions {
  /** Selects events; the others are skipped. */
  readonly isSelected: (event: GatewayEvent) => boolean;
  /** Id of the last event that was read. Default: none; reading begins with the oldest kept event. */
  readonly after?: string | undefined;
  /** Whether reading continues with new events. */
  readonly isFollowing: boolean;
}

/** How fast events are written to readers. */
export interface EventPace {
  /** Shortest time between two writes to a reader that follows, in ms. The first event after a pause is not delayed. */
  readonly intervalMs: number;
  /** Events that all readers together get; each has an equal part, and may save up as much as is kept. */
  readonly perSecond: number;
}

const PACE: EventPace = { intervalMs: HTTP_LIMITS.eventIntervalMs, perSecond: HTTP_LIMITS.eventsPerSecond };

export class RecentEvents {
  readonly #size: number;
  readonly #ring: (GatewayEvent | undefined)[];
  /** The events as text, each made for the first reader that gets it. */
  readonly #texts: (string | undefined)[];
  /** Prefix of every id: ids of another run of the gateway do not match. */
  readonly #run = crypto.randomUUID().slice(0, 8);
  readonly #readings = new Set<Reading>();
  /** Number of the next event. */
  #next = 0;
  readonly #pace: EventPace;
  #isWakeDue = false;
  #wokeAtMs = 0;
  #isOver = false;

  /** Listens until the events complete: when the gateway is closed. */
  constructor(events$: Observable<GatewayEvent>, size: number = HTTP_LIMITS.keptEvents, pace = PACE) {
    this.#pace = pace;
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
   * because it was too slow or reconnected too late, become one event `missed` with their number.
   */
  read({ isSelected, after, isFollowing }: ReadOptions, reader: StreamReader): Observable<StreamEvent> {
    return new Observable((subscriber) => {
      const { start, missed } = this.#startAfter(after);
      const reading: Reading = {
        isSelected,
        reader,
        subscriber,
        number: start,
        end: isFollowing ? Number.POSITIVE_INFINITY : this.#next,
        missed,
        allowance: this.#size,
        refilledAtMs: performance.now(),
      };
      this.#readings.add(reading);
      subscriber.add(() => this.#readings.delete(reading));
      subscriber.add(reader.onCaughtUp(() => this.#emit(reading)));
      this.#emit(reading);
    });
  }

  /** Twice per call: without a reader it is one write. */
  #keep(event: GatewayEvent): void {
    const slot = this.#next % this.#size;
    if (this.#readings.size > 0) this.#notifyReaders(this.#ring[slot]);
    this.#ring[slot] = event;
    this.#texts[slot] = undefined;
    this.#next += 1;
  }

  #notifyReaders(overwritten: GatewayEvent | undefined): void {
    const oldest = this.#next - this.#size;
    for (const reading of this.#readings) {
      if (reading.number !== oldest || oldest >= reading.end) continue;
      reading.number += 1;
      if (overwritten !== undefined && reading.isSelected(overwritten)) reading.missed += 1;
    }
    this.#wakeSoon();
  }

  /** Deferred: a call must not wait for the serialization of events. */
  #wakeSoon(): void {
    if (this.#isWakeDue) return;
    this.#isWakeDue = true;
    const waitMs = this.#wokeAtMs + this.#pace.intervalMs - performance.now();
    if (waitMs > 0) setTimeout(() => this.#wake(), waitMs).unref();
    else setImmediate(() => this.#wake());
  }

  #wake(): void {
    this.#isWakeDue = false;
    this.#wokeAtMs = performance.now();
    for (const reading of this.#readings) this.#emit(reading);
  }

  #emit(reading: Reading): void {
    this.#refill(reading);
    let before: number;
    do {
      before = reading.number;
      reading.reader.together(() => this.#emitAllowed(reading));
    } while (reading.number !== before && !reading.reader.isBehind);
    if (reading.allowance < 1 && reading.number < this.#next) this.#wakeSoon();
  }

  #refill(reading: Reading): void {
    const now = performance.now();
    const part = this.#pace.perSecond / Math.max(1, this.#readings.size);
    const gained = ((now - reading.refilledAtMs) / 1_000) * part;
    reading.allowance = Math.min(this.#size, reading.allowance + gained);
    reading.refilledAtMs = now;
  }

  /** Emits as much as its client accepts now, and its part of the rate allows. */
  #emitAllowed(reading: Reading): void {
    const { subscriber, reader } = reading;
    const end = Math.min(this.#next, reading.end);
    const mayGoOn = (): boolean => !subscriber.closed && !reader.isBehind && reading.allowance >= 1;
    while (mayGoOn() && (reading.missed > 0 || reading.number < end)) {
      if (reading.missed > 0) {
        subscriber.next(missedEvent(reading.missed));
        reading.missed = 0;
        continue;
      }
      const event = this.#nextSelected(reading, end);
      if (event === undefined) break;
      const slot = reading.number % this.#size;
      const id = `${this.#run}-${reading.number}`;
      reading.number += 1;
      reading.allowance -= 1;
      this.#texts[slot] ??= JSON.stringify(eventView(event));
      subscriber.next({ name: event.type, id, data: this.#texts[slot] });
    }
    const isAtEnd = reading.number >= end && reading.missed === 0;
    if (isAtEnd && (this.#isOver || reading.number >= reading.end)) subscriber.complete();
  }

  /** Skips what is not selected: nearly all of it, for a reader that does not read calls. Moves to the event that it returns. */
  #nextSelected(reading: Reading, end: number): GatewayEvent | undefined {
    for (; reading.number < end; reading.number += 1) {
      const event = this.#ring[reading.number % this.#size];
      if (event !== undefined && reading.isSelected(event)) return event;
    }
    return undefined;
  }

  /** Where reading begins, and how many events since `after` are no longer kept. */
  #startAfter(after: string | undefined): { readonly start: number; readonly missed: number } {
    const oldest = Math.max(0, this.#next - this.#size);
    const [, run, number] = /^([0-9a-f]{8})-(\d{1,15})$/.exec(after ?? '') ?? [];
    if (run !== this.#run) return { start: oldest, missed: 0 };
    const wanted = Math.min(Number(number) + 1, this.#next);
    const start = Math.max(wanted, oldest);
    return { start, missed: start - wanted };
  }
}

/** One reader and its position. */
interface Reading {
  readonly isSelected: ReadOptions['isSelected'];
  readonly reader: StreamReader;
  readonly subscriber: Subscriber<StreamEvent>;
  /** Number of the first event after its range. */
  readonly end: number;
  /** Number of its next event. */
  number: number;
  /** Selected events that were overwritten since the last `missed`. */
  missed: number;
  /** Events that it may get now. */
  allowance: number;
  refilledAtMs: number;
}

/** The format of the API: names in snake_case, the time as text, durations in ms with three decimals. */
function eventView({ type, atMs, ...fields }: GatewayEvent): Record<string, unknown> {
  const view: Record<string, unknown> = { type, at: new Date(atMs).toISOString() };
  for (const [name, value] of Object.entries(fields)) {
    const rounded = typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value;
    view[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] = rounded;
  }
  return view;
}

function missedEvent(count: number): StreamEvent {
  return { name: 'missed', data: JSON.stringify({ type: 'missed', count }) };
}

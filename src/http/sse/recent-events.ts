// The newest events of a gateway, for readers of `GET /events`. They stand in one ring, from which every reader takes what comes
// next when its client has taken what came before: a slow reader holds nothing, and loses the oldest.
// The route decides which events a caller may read.

import { Observable, type Subscriber } from 'rxjs';
import type { GatewayEvent } from '../../domain/events.ts';
import { HTTP_LIMITS } from '../limits.ts';
import type { StreamEvent, StreamReader } from './event-stream.ts';

export interface ReadOptions {
  /** Those that are told; the others are passed over. */
  readonly isWanted: (event: GatewayEvent) => boolean;
  /** Id of the last event that was read. Default: none, and reading begins with the oldest that is kept. */
  readonly after?: string | undefined;
  /** Whether reading goes on with what comes. */
  readonly isFollowing: boolean;
}

export class RecentEvents {
  readonly #size: number;
  readonly #ring: (GatewayEvent | undefined)[];
  /** Begins every id, so that one of another start of the gateway is not taken for one of this. */
  readonly #run = crypto.randomUUID().slice(0, 8);
  readonly #readings = new Set<Reading>();
  /** Number of the next event. */
  #next = 0;
  #isWakeDue = false;
  #isOver = false;

  /** Listens until the events complete: when the gateway is closed. */
  constructor(events$: Observable<GatewayEvent>, size: number = HTTP_LIMITS.keptEvents) {
    this.#size = size;
    this.#ring = new Array(size);
    events$.subscribe({
      next: (event) => this.#keep(event),
      complete: () => {
        this.#isOver = true;
        this.#wake();
      },
    });
  }

  /**
   * Cold: the kept events that are wanted, each with its id, then those that come, for as long as the gateway lives. What a reader
   * was too slow for, or came back too late for, is one event `missed` that says how many there were.
   */
  read({ isWanted, after, isFollowing }: ReadOptions, reader: StreamReader): Observable<StreamEvent> {
    return new Observable((subscriber) => {
      const { start, missed } = this.#startAfter(after);
      const reading: Reading = {
        isWanted,
        reader,
        subscriber,
        number: start,
        end: isFollowing ? Number.POSITIVE_INFINITY : this.#next,
        missed,
      };
      this.#readings.add(reading);
      subscriber.add(() => this.#readings.delete(reading));
      subscriber.add(reader.onCaughtUp(() => this.#handOn(reading)));
      this.#handOn(reading);
    });
  }

  /** Twice per call: without a reader it is one write. */
  #keep(event: GatewayEvent): void {
    const slot = this.#next % this.#size;
    if (this.#readings.size > 0) this.#tellReaders(this.#ring[slot]);
    this.#ring[slot] = event;
    this.#next += 1;
  }

  #tellReaders(overwritten: GatewayEvent | undefined): void {
    const oldest = this.#next - this.#size;
    for (const reading of this.#readings) {
      if (reading.number !== oldest || oldest >= reading.end) continue;
      reading.number += 1;
      if (overwritten !== undefined && reading.isWanted(overwritten)) reading.missed += 1;
    }
    if (this.#isWakeDue) return;
    this.#isWakeDue = true;
    // Not within a call, which would wait while events are put into words.
    setImmediate(() => this.#wake());
  }

  #wake(): void {
    this.#isWakeDue = false;
    for (const reading of this.#readings) this.#handOn(reading);
  }

  /** As much as its client takes now. */
  #handOn(reading: Reading): void {
    const { subscriber, reader, isWanted } = reading;
    const end = Math.min(this.#next, reading.end);
    while (!subscriber.closed && !reader.isBehind && (reading.missed > 0 || reading.number < end)) {
      if (reading.missed > 0) {
        subscriber.next(missedEvent(reading.missed));
        reading.missed = 0;
        continue;
      }
      const event = this.#ring[reading.number % this.#size];
      const id = `${this.#run}-${reading.number}`;
      reading.number += 1;
      if (event === undefined || !isWanted(event)) continue;
      subscriber.next({ name: event.type, id, data: JSON.stringify(eventView(event)) });
    }
    const isAtEnd = reading.number >= end && reading.missed === 0;
    if (isAtEnd && (this.#isOver || reading.number >= reading.end)) subscriber.complete();
  }

  /** Where reading begins, and how many events came in between that are kept no more. */
  #startAfter(after: string | undefined): { readonly start: number; readonly missed: number } {
    const oldest = Math.max(0, this.#next - this.#size);
    const [, run, number] = /^([0-9a-f]{8})-(\d{1,15})$/.exec(after ?? '') ?? [];
    if (run !== this.#run) return { start: oldest, missed: 0 };
    const wanted = Math.min(Number(number) + 1, this.#next);
    const start = Math.max(wanted, oldest);
    return { start, missed: start - wanted };
  }
}

/** One reader, and how far it has come. */
interface Reading {
  readonly isWanted: ReadOptions['isWanted'];
  readonly reader: StreamReader;
  readonly subscriber: Subscriber<StreamEvent>;
  /** Of the first event that is not for it. */
  readonly end: number;
  /** Of the next event that it gets. */
  number: number;
  /** Events that it wanted and that were overwritten, since it was told. */
  missed: number;
}

/** As the rest of the API writes it: names in snake_case, the time as text. */
export function eventView({ type, atMs, ...fields }: GatewayEvent): Record<string, unknown> {
  const view: Record<string, unknown> = { type, at: new Date(atMs).toISOString() };
  for (const [name, value] of Object.entries(fields)) {
    view[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] = value;
  }
  return view;
}

function missedEvent(count: number): StreamEvent {
  return { name: 'missed', data: JSON.stringify({ type: 'missed', count }) };
}

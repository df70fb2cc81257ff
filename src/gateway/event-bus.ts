// The event stream of the gateway.

import { filter, Observable, type Observer, Subscriber, type Subscription, type UnaryFunction } from 'rxjs';
import { messageOf } from '../domain/errors/errors.ts';
import type { EventName, GatewayEvent } from '../domain/events/events.ts';

/**
 * Emits the events of one gateway until `close`. Hot, no replay. A listener that throws, or whose promise rejects,
 * harms neither the others nor the gateway.
 */
export class EventBus {
  /** The subscribers. A Subject would make five objects per listener and event. */
  readonly #subscribers = new Set<Subscriber<GatewayEvent>>();
  /** A copy for events, which go to the listeners that were there before them; undefined after a change, until the next event. */
  #listening: readonly Subscriber<GatewayEvent>[] | undefined;
  #isClosed = false;
  readonly #all$ = new Observable<GatewayEvent>((subscriber) => {
    if (this.#isClosed) return subscriber.complete();
    this.#subscribers.add(subscriber);
    this.#listening = undefined;
    return () => {
      this.#subscribers.delete(subscriber);
      this.#listening = undefined;
    };
  });
  readonly #pending: GatewayEvent[] = [];
  #isEmitting = false;
  /**
   * The events for isolated listeners: an error that a listener throws, or its promise rejects with, becomes a process warning,
   * not an uncaught exception.
   */
  readonly events$: Observable<GatewayEvent> = isolateListeners(this.#all$);

  /** Emits to all listeners. Events that listeners cause are emitted afterwards, so that all listeners get the same order. */
  emit(event: GatewayEvent): void {
    if (this.#isEmitting) {
      this.#pending.push(event);
      return;
    }
    this.#isEmitting = true;
    for (let next: GatewayEvent | undefined = event; next; next = this.#pending.shift()) {
      this.#listening ??= [...this.#subscribers];
      for (const subscriber of this.#listening) subscriber.next(next);
    }
    this.#isEmitting = false;
  }

  /** The events of one name. Hot, no replay; listeners are isolated. */
  on<N extends EventName>(name: N): Observable<Extract<GatewayEvent, { type: N }>> {
    const hasName = (event: GatewayEvent): event is Extract<GatewayEvent, { type: N }> => event.type === name;
    return isolateListeners(this.#all$.pipe(filter(hasName)));
  }

  close(): void {
    this.#isClosed = true;
    for (const subscriber of [...this.#subscribers]) subscriber.complete();
    this.#subscribers.clear();
    this.#listening = undefined;
  }
}

/**
 * The stream for listeners of other code: an error that a listener throws, or its promise rejects with, becomes a warning of the
 * process and reaches no other listener. So does an error of an operator that no listener takes. The streams that `pipe` makes of
 * it are such streams, too; operators subscribe as usual.
 */
export function isolateListeners<T>(source: Observable<T>): Observable<T> {
  const isolatedStream = new Observable<T>((subscriber) => source.subscribe(subscriber));
  const subscribe = isolatedStream.subscribe.bind(isolatedStream);
  isolatedStream.subscribe = (
    listener?: Partial<Observer<T>> | ((value: T) => void) | null,
    error?: ((thrown: unknown) => void) | null,
    complete?: (() => void) | null,
  ): Subscription => {
    if (listener instanceof Subscriber) return subscribe(listener);
    const observer: Listener<T> =
      typeof listener === 'object' && listener !== null ? listener : { next: listener, error, complete };
    return subscribe({
      // There is no function for each event: a call has two events, and each has several listeners.
      next: (value) => {
        try {
          const returned: unknown = observer.next?.(value);
          if (returned !== undefined) warnIfRejected(returned);
        } catch (thrown) {
          warn(thrown);
        }
      },
      error: (thrown) => {
        if (observer.error) attempt(() => observer.error?.(thrown));
        else warn(thrown);
      },
      complete: () => attempt(() => observer.complete?.()),
    });
  };
  const forEach = (next: (value: T) => void): Promise<void> =>
    new Promise((resolve, reject) => {
      isolatedStream.subscribe({ next, error: reject, complete: resolve });
    });
  const pipe = (...operators: UnaryFunction<unknown, unknown>[]): unknown => {
    const piped = operators.reduce((input: unknown, operator) => operator(input), isolatedStream);
    // An observable with methods of its own, such as a Subject, is not plain.
    const isPlain = piped instanceof Observable && Object.getPrototypeOf(piped) === Observable.prototype;
    return isPlain && piped !== isolatedStream ? isolateListeners(piped) : piped;
  };
  return Object.assign(isolatedStream, { pipe, forEach });
}

type Listener<T> = { readonly [Name in keyof Observer<T>]?: Observer<T>[Name] | null | undefined };

/** An async function is a listener, too. */
function warnIfRejected(returned: unknown): void {
  if (isThenable(returned)) Promise.resolve(returned).catch(warn);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof Object(value).then === 'function';
}

function attempt(listener: () => unknown): void {
  try {
    warnIfRejected(listener());
  } catch (thrown) {
    warn(thrown);
  }
}

function warn(thrown: unknown): void {
  process.emitWarning(asWarning(thrown), 'StagedoorListenerWarning');
}

/** The error that a listener threw, if its text can be read; Node reads it later, where nothing catches. */
function asWarning(thrown: unknown): Error {
  try {
    if (thrown instanceof Error && `${thrown} ${thrown.stack}` !== '') return thrown;
  } catch {
    // Has no text.
  }
  return new Error(messageOf(thrown));
}

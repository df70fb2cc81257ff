// Passes messages that the backend sends outside of exchanges to the event streams of one client. They come from the
// present binding of the session.

import { Subject, type Subscriber, Subscription } from 'rxjs';
import { type ServerMessage, updateNotice } from '../../domain/mcp/client.ts';
import { noticesInTasks } from '../../domain/mcp/notices-in-tasks.ts';
import { inTasks } from '../../domain/time/task-streams.ts';
import type { FeedClient } from '../subscriptions/feed.ts';
import type { Binding } from './binding/binding.ts';
import type { SessionCore } from './session-core.ts';

/** The event streams of one client, and the messages of the backend for them. */
export class SessionMessages {
  readonly #session: SessionCore;
  readonly #streams = new Subject<ServerMessage>();
  /** The subscription to the messages of the binding, while there are streams. */
  #listening: Subscription | undefined;
  /** The sending of updates that may have been missed; undefined before the first. */
  #missed: Subscription | undefined;

  constructor(session: SessionCore) {
    this.#session = session;
  }

  get areObserved(): boolean {
    return this.#streams.observed;
  }

  /**
   * Adds a stream until it unsubscribes. With the first stream the session listens at its binding; an unbound session
   * asks for one.
   */
  addStream(stream: Subscriber<ServerMessage>): void {
    const isFirst = !this.areObserved;
    this.#streams.subscribe(stream);
    stream.add(() => this.areObserved || this.#listening?.unsubscribe());
    if (!isFirst) return;
    const { binding } = this.#session;
    if (binding !== undefined) this.#listenAt(binding);
    this.#session.send({ type: 'listened' });
  }

  /** Listens at this binding instead of the previous one, if there are streams. */
  #listenAt(binding: Binding): void {
    if (!this.areObserved) return;
    this.#listening?.unsubscribe();
    const listening = new Subscription();
    this.#listening = listening;
    listening.add(binding.listen(this.#clientOf(binding)));
    const rebind = () => this.areObserved && this.#session.requestBinding();
    // Deferred, because all listeners of an instance lose it at the same time.
    const check = (): void => {
      if (isGone(binding) && !binding.isReplaced) this.#session.deps.scheduler.run(rebind);
    };
    listening.add(binding.ref.watch(check));
    listening.add(binding.conversation?.closed$.subscribe(check));
  }

  /**
   * Called when the session has moved: listens at the new binding. Updates may have been missed until its backend is
   * subscribed, and are then sent again.
   */
  movedTo(binding: Binding, answers: readonly Promise<unknown>[]): void {
    this.#listenAt(binding);
    if (!this.areObserved || this.#session.value.uris.length === 0) return;
    void Promise.allSettled([binding.untilSubscribed, ...answers]).then(
      () => binding === this.#session.binding && this.#sendMissed(),
    );
  }

  /** Sends one update of each subscribed resource. A further interruption starts this again from the beginning. */
  #sendMissed(): void {
    const session = this.#session;
    this.#missed?.unsubscribe();
    this.#missed = inTasks(session.value.uris, session.deps.scheduler).subscribe(
      (uri) => session.uris.has(uri) && this.#streams.next(updateNotice(uri)),
    );
    this.#listening?.add(this.#missed);
  }

  complete(): void {
    this.#streams.complete();
  }

  /**
   * The listener of a binding. Messages of a shared conversation are delivered in tasks, since thousands of
   * sessions may get the same one.
   */
  #clientOf({ feed }: Binding): FeedClient<ServerMessage> {
    const session = this.#session;
    const deliver = (message: ServerMessage): void => this.#streams.next(message);
    const subscribed = { has: (uri: string) => session.uris.has(uri) };
    const notify = noticesInTasks(deliver, subscribed, session.deps.scheduler);
    return {
      ownerId: session.value.ownerId,
      get uris() {
        return session.uris;
      },
      missed: () => this.#sendMissed(),
      deliver: (message) =>
        feed === undefined || message.kind === 'request' ? deliver(message) : notify(message),
    };
  }
}

/**
 * True when the binding has to be replaced. An unhealthy instance does not count: it may become healthy again
 * with the same conversation.
 */
function isGone({ isIntact, ref: { state } }: Binding): boolean {
  return !isIntact || state === 'draining' || state === 'stopped';
}

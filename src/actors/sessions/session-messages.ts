// The messages of the backend outside of exchanges, for the event streams of one client: those of the present
// binding of its session.

import { Subject, type Subscriber, Subscription } from 'rxjs';
import { type ServerMessage, updateNotice } from '../../domain/mcp/client.ts';
import { noticesInTasks } from '../../domain/mcp/notices-in-tasks.ts';
import { inTasks } from '../../domain/time/task-streams.ts';
import type { FeedClient } from '../subscriptions/feed.ts';
import type { Binding } from './binding.ts';
import type { SessionCore } from './session-host.ts';

/** The streams of one client, and the messages of the backend for them. */
export class SessionMessages {
  readonly #session: SessionCore;
  readonly #streams = new Subject<ServerMessage>();
  /** The subscription at the binding, as long as there are streams. */
  #listening: Subscription | undefined;
  /** Updates that may have been missed, while they are sent. */
  #missed: Subscription | undefined;

  constructor(session: SessionCore) {
    this.#session = session;
  }

  get areObserved(): boolean {
    return this.#streams.observed;
  }

  /** Until the stream unsubscribes. The first one listens at the binding; an unbound session looks for one. */
  addStream(stream: Subscriber<ServerMessage>): void {
    const isFirst = !this.areObserved;
    this.#streams.subscribe(stream);
    stream.add(() => this.areObserved || this.#listening?.unsubscribe());
    const { binding, isUnbound, isListened } = this.#session;
    if (isFirst && binding !== undefined) this.listenAt(binding);
    if (isFirst && isUnbound && isListened) this.#session.requestBinding(false);
  }

  /** Listens at this binding instead of the previous one, while there are streams. */
  listenAt(binding: Binding): void {
    if (!this.areObserved) return;
    this.#listening?.unsubscribe();
    const listening = new Subscription();
    this.#listening = listening;
    listening.add(binding.listen(this.#clientOf(binding)));
    const rebind = () => this.areObserved && this.#session.requestBinding(false);
    // Deferred, because all listeners of an instance lose it at the same time.
    const check = (): void => {
      if (isGone(binding) && !binding.isReplaced) this.#session.deps.scheduler.run(rebind);
    };
    listening.add(binding.ref.watch(check));
    listening.add(binding.conversation?.closed$.subscribe(check));
  }

  /** The session has moved: updates were missed until the backend at this binding is subscribed. */
  movedTo(binding: Binding, answers: readonly Promise<unknown>[]): void {
    this.listenAt(binding);
    if (!this.areObserved || this.#session.value.uris.length === 0) return;
    void Promise.allSettled([binding.untilSubscribed, ...answers]).then(
      () => binding === this.#session.binding && this.#resumed(),
    );
  }

  /** Sends an update of each resource; a further break begins anew. */
  #resumed(): void {
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

  /** Gets the messages of a shared conversation in tasks: thousands of sessions may get the same one. */
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
      resumed: () => this.#resumed(),
      deliver: (message) =>
        feed === undefined || message.kind === 'request' ? deliver(message) : notify(message),
    };
  }
}

/** Not that of an unhealthy instance, which may become healthy again with the same conversation. */
function isGone({ isIntact, ref: { state } }: Binding): boolean {
  return !isIntact || state === 'draining' || state === 'stopped';
}

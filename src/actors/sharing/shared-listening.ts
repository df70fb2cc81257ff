// Updates of resources of modern backends for clients of the modern era: one subscription per instance, because each one takes a
// connection, with the resources of all clients. One object per fleet.

import { filter, Observable, Subject } from 'rxjs';
import type { ServerNotification } from '../../domain/client.ts';
import { isAboutOneOf } from '../../domain/resource-uris.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { ListenClient } from './listen-client.ts';

/** What a subscription needs of an instance. */
export type ListeningHost = Pick<InstanceRef, 'listen'>;

/** Resources in one subscription; while more are wanted, each client gets its part of them. */
const MOST_RESOURCES = 10_000;

export class SharedListening {
  readonly #instances = new Map<ListeningHost, InstanceUpdates>();

  /** Number of instances that have a subscription. */
  get size(): number {
    return this.#instances.size;
  }

  /**
   * Cold: the updates of these resources while the instance has the session that it has now; see ListenClient. Never errors,
   * never completes.
   */
  updates(host: ListeningHost, uris: ReadonlySet<string>): Observable<ServerNotification> {
    return new Observable((subscriber) => {
      const updates = this.#instances.get(host) ?? this.#open(host);
      subscriber.add(
        updates.updates$.pipe(filter(({ params }) => isAboutOneOf(params.uri, uris))).subscribe(subscriber),
      );
      const forget = updates.want(uris);
      return () => {
        forget();
        if (updates.isEmpty) this.#instances.delete(host);
      };
    });
  }

  #open(host: ListeningHost): InstanceUpdates {
    const updates = new InstanceUpdates(host);
    this.#instances.set(host, updates);
    return updates;
  }
}

/** What is wanted of one instance, and what it was asked for. */
class InstanceUpdates {
  readonly updates$ = new Subject<ServerNotification>();
  readonly #client: ListenClient;
  /** How many clients want each resource, those included that the backend was not asked for. */
  readonly #wanted = new Map<string, number>();
  /** What each client wants. */
  readonly #clients = new Set<{ readonly uris: ReadonlySet<string> }>();
  /** What the latest subscription is for, and the one that was acknowledged last. */
  #asked: ReadonlySet<string> = new Set();
  #acknowledged: ReadonlySet<string> = new Set();

  constructor(host: ListeningHost) {
    this.#client = new ListenClient({
      listen: (request) => host.listen(request),
      deliver: (notification) => {
        if (notification.method === 'notifications/resources/updated') this.updates$.next(notification);
      },
      acknowledged: () => {
        this.#acknowledged = this.#asked;
        this.#settle();
      },
      retry: () => this.#settle(),
    });
  }

  get isEmpty(): boolean {
    return this.#clients.size === 0;
  }

  /** Until the returned function is called, once. */
  want(uris: ReadonlySet<string>): () => void {
    const client = { uris };
    this.#clients.add(client);
    for (const uri of uris) this.#wanted.set(uri, (this.#wanted.get(uri) ?? 0) + 1);
    this.#settle();
    return () => {
      if (this.#clients.delete(client)) this.#forget(uris);
    };
  }

  #forget(uris: ReadonlySet<string>): void {
    for (const uri of uris) {
      const count = this.#wanted.get(uri) ?? 0;
      if (count > 1) this.#wanted.set(uri, count - 1);
      else this.#wanted.delete(uri);
    }
    if (this.isEmpty) this.#client.stop();
    else this.#settle(); // others may have waited for the room
  }

  /** Asks for what is wanted and not subscribed to. What is not wanted any more goes with the next subscription. */
  #settle(): void {
    if (this.#wanted.size === 0 || !this.#client.isReady) return;
    const chosen = this.#chosen();
    if (this.#client.isOpen && [...chosen].every((uri) => this.#acknowledged.has(uri))) return;
    this.#asked = chosen; // before asking: the acknowledgement may come in there
    this.#client.ask({ resourceSubscriptions: [...chosen] });
  }

  /** What to ask for: everything, or, where that is too much, one resource of each client in turn. */
  #chosen(): ReadonlySet<string> {
    if (this.#wanted.size <= MOST_RESOURCES) return new Set(this.#wanted.keys());
    const chosen = new Set<string>();
    for (let left = [...this.#clients].map(({ uris }) => uris.values()); ; ) {
      const more = left.filter((uris) => {
        const { done, value } = uris.next();
        if (done !== true && chosen.size < MOST_RESOURCES) chosen.add(value);
        return done !== true;
      });
      if (more.length === 0 || chosen.size === MOST_RESOURCES) return chosen;
      left = more;
    }
  }
}

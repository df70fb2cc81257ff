// Resource updates of modern backends for modern clients: one subscription per instance with the resources of all clients, because
// each subscription takes a connection. One object per fleet.

import { filter, Observable, Subject } from 'rxjs';
import type { ServerNotification } from '../../domain/client.ts';
import { isAboutOneOf } from '../../domain/resource-uris.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { ListenClient } from './listen-client.ts';

/** What a subscription needs of an instance. */
export type ListeningHost = Pick<InstanceRef, 'listen'>;

/** Most resources in one subscription; beyond that each client gets a part. */
const MOST_RESOURCES = 10_000;

export class SharedListening {
  readonly #instances = new Map<ListeningHost, InstanceUpdates>();

  /** Number of instances that have a subscription. */
  get size(): number {
    return this.#instances.size;
  }

  /**
   * Cold: the updates of these resources during the present session of the instance; see ListenClient. Never errors, never
   * completes.
   */
  updates(host: ListeningHost, uris: ReadonlySet<string>): Observable<ServerNotification> {
    return new Observable((subscriber) => {
      const updates = this.#instances.get(host) ?? this.#open(host);
      subscriber.add(
        updates.updates$.pipe(filter(({ params }) => isAboutOneOf(params.uri, uris))).subscribe(subscriber),
      );
      const remove = updates.add(uris);
      return () => {
        remove();
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

/** The wanted and the subscribed resources of one instance. */
class InstanceUpdates {
  readonly updates$ = new Subject<ServerNotification>();
  readonly #client: ListenClient;
  /** The number of clients of each resource, subscribed or not. */
  readonly #wanted = new Map<string, number>();
  /** The resources of each client. */
  readonly #clients = new Set<{ readonly uris: ReadonlySet<string> }>();
  /** The resources of the latest subscription, and of the last acknowledged one. */
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
        this.#subscribe();
      },
      retry: () => this.#subscribe(),
    });
  }

  get isEmpty(): boolean {
    return this.#clients.size === 0;
  }

  /** Adds a client, until the returned function is called. */
  add(uris: ReadonlySet<string>): () => void {
    const client = { uris };
    this.#clients.add(client);
    for (const uri of uris) this.#wanted.set(uri, (this.#wanted.get(uri) ?? 0) + 1);
    this.#subscribe();
    return () => {
      if (this.#clients.delete(client)) this.#remove(uris);
    };
  }

  #remove(uris: ReadonlySet<string>): void {
    for (const uri of uris) {
      const count = this.#wanted.get(uri) ?? 0;
      if (count > 1) this.#wanted.set(uri, count - 1);
      else this.#wanted.delete(uri);
    }
    if (this.isEmpty) this.#client.stop();
    else this.#subscribe(); // others may have waited for room
  }

  /** Subscribes if a wanted resource is missing. Resources that are no longer wanted are dropped with the next subscription. */
  #subscribe(): void {
    if (this.#wanted.size === 0 || !this.#client.isReady) return;
    const chosen = this.#chosen();
    if (this.#client.isOpen && [...chosen].every((uri) => this.#acknowledged.has(uri))) return;
    this.#asked = chosen; // before asking: the acknowledgement may come synchronously
    this.#client.ask({ resourceSubscriptions: [...chosen] });
  }

  /** All resources, or, if there are too many, one of each client in turn. */
  #chosen(): ReadonlySet<string> {
    if (this.#wanted.size <= MOST_RESOURCES) return new Set(this.#wanted.keys());
    const chosen = new Set<string>();
    for (let remaining = [...this.#clients].map(({ uris }) => uris.values()); ; ) {
      const more = remaining.filter((uris) => {
        const { done, value } = uris.next();
        if (done !== true && chosen.size < MOST_RESOURCES) chosen.add(value);
        return done !== true;
      });
      if (more.length === 0 || chosen.size === MOST_RESOURCES) return chosen;
      remaining = more;
    }
  }
}

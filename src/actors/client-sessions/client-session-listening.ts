// The subscription at a modern backend for the sessions in one conversation: the lists that the backend announces, and the
// resources that the sessions subscribed to. bindings.ts distributes the messages.

import type { ServerMessage } from '../../domain/client.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { ListenClient, listNotifications } from '../sharing/listen-client.ts';
import type { ResourceUris, SessionDeps } from './client-session-types.ts';

export interface ListeningOptions {
  readonly ref: Pick<InstanceRef, 'listen'>;
  readonly peer: Pick<Peer, 'capabilities'>;
  readonly alarm: SessionDeps['alarm'];
  /** The subscribed resources; read at each request. */
  readonly uris: Pick<ResourceUris, 'keys'>;
  readonly deliver: (message: ServerMessage) => void;
}

/** Subscribes in the microtask after a change, so that simultaneous changes make one subscription. */
export class Listening {
  readonly #options: ListeningOptions;
  readonly #client: ListenClient;
  #isScheduled = false;
  #isClosed = false;
  /** Resolves when the backend has acknowledged the latest subscription. */
  #acknowledgement: { readonly promise: Promise<void>; readonly end: () => void } | undefined;

  constructor(options: ListeningOptions) {
    this.#options = options;
    this.#client = new ListenClient({
      listen: (request) => options.ref.listen(request),
      deliver: options.deliver,
      acknowledged: () => this.#settled(),
      ended: () => this.#settled(),
      retry: () => this.#ask(),
    });
    this.refresh();
  }

  /** The subscribed resources may have changed. */
  refresh(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (!this.#isClosed) this.#ask();
    });
  }

  /** Resolves when the backend has acknowledged the latest subscription, or will not, at the latest after LIMITS.backgroundMs. */
  get acknowledged(): Promise<void> | undefined {
    if (this.#isClosed || (!this.#isScheduled && !this.#client.isPending)) return undefined;
    this.#acknowledgement ??= this.#newAcknowledgement();
    return this.#acknowledgement.promise;
  }

  close(): void {
    this.#isClosed = true;
    this.#acknowledgement?.end();
    this.#client.stop();
  }

  #ask(): void {
    const { peer, uris } = this.#options;
    const lists = listNotifications(peer);
    const resources = [...uris.keys()];
    const notifications = resources.length === 0 ? lists : { ...lists, resourceSubscriptions: resources };
    if (Object.keys(notifications).length > 0) {
      this.#client.ask(notifications);
      return;
    }
    this.#client.stop();
    this.#acknowledgement?.end();
  }

  /** The latest subscription may still be pending when the one before it ends. */
  #settled(): void {
    if (!this.#isScheduled && !this.#client.isPending) this.#acknowledgement?.end();
  }

  #newAcknowledgement() {
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = (): void => {
      this.#acknowledgement = undefined;
      disarm();
      resolve();
    };
    const disarm = this.#options.alarm(LIMITS.backgroundMs, end);
    return { promise, end };
  }
}

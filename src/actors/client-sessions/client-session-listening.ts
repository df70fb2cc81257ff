// The subscription at a modern backend for all sessions that share its conversation: the lists that it announces, and the
// resources that the sessions subscribed to. bindings.ts decides which of them get a message.

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
  /** Read whenever it asks. */
  readonly uris: Pick<ResourceUris, 'keys'>;
  readonly deliver: (message: ServerMessage) => void;
}

/** Asks in the microtask after a change, so that changes that come together are one subscription. */
export class Listening {
  readonly #options: ListeningOptions;
  readonly #client: ListenClient;
  #isDue = false;
  #isClosed = false;
  /** Callbacks that wait until the backend has agreed to the present wishes. */
  #agreement: { readonly promise: Promise<void>; readonly end: () => void } | undefined;

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

  /** The wanted resources may have changed. */
  refresh(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      if (!this.#isClosed) this.#ask();
    });
  }

  /** Resolves when the backend has agreed to the present wishes, or will not, at the latest after LIMITS.courtesyMs. */
  get agreed(): Promise<void> | undefined {
    if (this.#isClosed || (!this.#isDue && !this.#client.isPending)) return undefined;
    this.#agreement ??= this.#newAgreement();
    return this.#agreement.promise;
  }

  close(): void {
    this.#isClosed = true;
    this.#agreement?.end();
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
    this.#agreement?.end();
  }

  /** The latest subscription may still be pending when the one before it ends. */
  #settled(): void {
    if (!this.#isDue && !this.#client.isPending) this.#agreement?.end();
  }

  #newAgreement() {
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = (): void => {
      this.#agreement = undefined;
      disarm();
      resolve();
    };
    const disarm = this.#options.alarm(LIMITS.courtesyMs, end);
    return { promise, end };
  }
}

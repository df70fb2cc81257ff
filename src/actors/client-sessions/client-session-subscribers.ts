// The listeners of a session: the event streams that its client holds open. They stay while the session moves from one
// instance to another; the session is notified when the binding that they listen at is lost.

import { Observable, Subject, Subscription } from 'rxjs';
import type { ServerMessage } from '../../domain/client.ts';
import type { Binding, ResourceUris, SessionSubscriber } from './client-session-types.ts';

export interface SubscribersOptions {
  readonly uris: () => ResourceUris;
  /** The first listener has come, or the last one has gone. */
  readonly changed: (isListening: boolean) => void;
  /** The binding it is attached to may not be used any more. */
  readonly lost: () => void;
}

export class Subscribers implements SessionSubscriber {
  /** Hot; subscribing is listening. */
  readonly messages$: Observable<ServerMessage>;
  readonly #options: SubscribersOptions;
  readonly #subject = new Subject<ServerMessage>();
  #attached: { readonly binding: Binding; readonly subscription: Subscription } | undefined;

  constructor(options: SubscribersOptions) {
    this.#options = options;
    this.messages$ = new Observable((subscriber) => {
      const isFirst = !this.isListening;
      const subscription = this.#subject.subscribe(subscriber);
      if (isFirst && this.isListening) options.changed(true);
      return () => {
        subscription.unsubscribe();
        if (!this.isListening) options.changed(false);
      };
    });
  }

  get isListening(): boolean {
    return this.#subject.observed;
  }

  /** Resolves when the streams at its binding are open at the backend, or will not be; undefined without a need to wait. */
  get opening(): Promise<void> | undefined {
    return this.#attached?.binding.opening;
  }

  get uris(): ResourceUris {
    return this.#options.uris();
  }

  deliver(message: ServerMessage): void {
    this.#subject.next(message);
  }

  lost(): void {
    this.#options.lost();
  }

  /** Listens at this binding from now on, and at no other. */
  attach(binding: Binding): void {
    this.detach();
    const subscription = new Subscription();
    this.#attached = { binding, subscription };
    subscription.add(binding.listen(this));
    // An instance that is unhealthy may come back, and its conversation with it.
    const look = () => isGone(binding) && this.#attached?.binding === binding && this.lost();
    subscription.add(binding.ref.state$.subscribe({ next: look, complete: look, error: look }));
  }

  detach(): void {
    const attached = this.#attached;
    this.#attached = undefined;
    attached?.subscription.unsubscribe();
  }

  /** The session subscribed to a resource, or no longer does. */
  wants(uri: string, isWanted: boolean): Promise<void> | undefined {
    return this.#attached?.binding.wants(uri, isWanted);
  }

  /** The session is over. */
  end(): void {
    this.detach();
    this.#subject.complete();
  }
}

function isGone({ isIntact, ref: { state } }: Binding): boolean {
  return !isIntact || state === 'draining' || state === 'stopped';
}

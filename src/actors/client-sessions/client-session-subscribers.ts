// The event streams that the client of a session holds open. They stay open while the session moves between instances; the
// session is notified when their binding is lost.

import { Observable, Subject, Subscription } from 'rxjs';
import type { ServerMessage } from '../../domain/client.ts';
import type { Binding, ResourceUris, SessionSubscriber } from './client-session-types.ts';

export interface SubscribersOptions {
  readonly uris: () => ResourceUris;
  /** The first listener was added, or the last one removed. */
  readonly changed: (isListening: boolean) => void;
  /** The attached binding may not be used any more. */
  readonly lost: () => void;
}

export class Subscribers implements SessionSubscriber {
  /** Hot. Subscribers count as listeners. */
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

  /** See Binding.opening. */
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

  /** Listens at this binding from now on, and at no other one. */
  attach(binding: Binding): void {
    this.detach();
    const subscription = new Subscription();
    this.#attached = { binding, subscription };
    subscription.add(binding.listen(this));
    // An unhealthy instance may become healthy again, with the same conversation.
    const check = () => isGone(binding) && this.#attached?.binding === binding && this.lost();
    subscription.add(binding.ref.state$.subscribe({ next: check, complete: check, error: check }));
  }

  detach(): void {
    const attached = this.#attached;
    this.#attached = undefined;
    attached?.subscription.unsubscribe();
  }

  /** See Binding.setSubscribed. */
  setSubscribed(uri: string, isSubscribed: boolean): Promise<void> | undefined {
    return this.#attached?.binding.setSubscribed(uri, isSubscribed);
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

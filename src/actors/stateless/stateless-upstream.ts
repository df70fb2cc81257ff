// The calls in a conversation whose backend may send messages outside of them, over HTTP or during a request of the gateway itself:
// its questions and log messages are passed to a call that is under way. All calls in it belong to one owner, so that no other
// owner gets them.

import { Observable } from 'rxjs';
import type { ServerMessage } from '../../domain/client.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import { isCustomNotice } from '../../domain/mcp.ts';
import type { CallUpstream, Upstream } from '../../transports/transport.ts';
import { NO_SUBSCRIBER } from '../instances/conversation.ts';

export class StatelessUpstream implements CallUpstream {
  readonly #inner: Upstream;
  /** Calls under way, oldest first. */
  readonly #calls = new Set<(message: ServerMessage) => void>();

  /** Keeps the stream of `inner` open until that ends. */
  constructor(inner: Upstream) {
    this.#inner = inner;
    inner.messages$.subscribe((message) => this.#deliver(message));
  }

  get isIndependent(): boolean | undefined {
    return this.#inner.isIndependent;
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return new Observable((subscriber) => {
      const listener = (message: ServerMessage) => subscriber.next(message);
      this.#calls.add(listener);
      subscriber.add(() => this.#calls.delete(listener));
      subscriber.add(this.#inner.exchange(request).subscribe(subscriber));
    });
  }

  /** A question goes to the latest call, the end of an elicitation to all calls; other messages only to a sole call. */
  #deliver(message: ServerMessage): void {
    if (message.kind === 'request') {
      const last = [...this.#calls].at(-1);
      if (last === undefined) message.answer(NO_SUBSCRIBER);
      else last(message);
    } else if (message.method === 'notifications/message' || isCustomNotice(message.method)) {
      if (this.#calls.size === 1) for (const call of this.#calls) call(message);
    } else if (message.method === 'notifications/elicitation/complete') {
      for (const call of [...this.#calls]) call(message);
    }
  }
}

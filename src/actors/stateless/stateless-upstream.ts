// A conversation whose backend may send messages outside of its calls, over HTTP or during a request of the gateway itself:
// passes its questions and log messages to a call that is under way. All calls in it belong to one owner, so that no other owner
// gets them.

import { Observable, type Subscription } from 'rxjs';
import type { ClientReply, ServerMessage } from '../../domain/client.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../domain/exchange.ts';
import type { JsonObject } from '../../domain/json.ts';
import { RPC } from '../../domain/jsonrpc.ts';
import { isCustomNotice, type Peer } from '../../domain/mcp.ts';
import type { Closed, Upstream } from '../../transports/transport.ts';

/** The answer to a question of a backend while no call of its client is under way. */
export const NO_SUBSCRIBER: ClientReply = {
  error: { code: RPC.methodNotFound, message: 'The client is not there to be asked.' },
};

type MessageReceiver = (message: ServerMessage) => void;

export class StatelessUpstream implements Upstream {
  readonly #inner: Upstream;
  /** Calls under way, oldest first. */
  readonly #calls = new Set<MessageReceiver>();
  readonly #subscription: Subscription;

  /** Keeps the stream of `inner` open until that ends. */
  constructor(inner: Upstream) {
    this.#inner = inner;
    this.#subscription = inner.messages$.subscribe({
      next: (message) => this.#deliver(message),
      error: () => undefined, // it ends with the conversation; closed$ has the reason
    });
  }

  get peer(): Peer {
    return this.#inner.peer;
  }
  get pid(): number | undefined {
    return this.#inner.pid;
  }
  get isIndependent(): boolean | undefined {
    return this.#inner.isIndependent;
  }
  get messages$(): Observable<ServerMessage> {
    return this.#inner.messages$;
  }
  get closed$(): Observable<Closed> {
    return this.#inner.closed$;
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return new Observable((subscriber) => {
      const listener: MessageReceiver = (message) => subscriber.next(message);
      this.#calls.add(listener);
      subscriber.add(() => this.#calls.delete(listener));
      subscriber.add(this.#inner.exchange(request).subscribe(subscriber));
    });
  }

  notify(method: string, params: JsonObject): void {
    this.#inner.notify(method, params);
  }

  close(): Promise<void> {
    this.#subscription.unsubscribe();
    return this.#inner.close();
  }

  /** A question goes to the latest call; a message that names no call only to the sole call, if there is one. */
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

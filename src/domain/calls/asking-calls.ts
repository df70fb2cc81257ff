// Calls of modern clients, in whose middle a legacy backend may ask its client something.

import type { Observable } from 'rxjs';
import type { ClientAnswer, ClientQuestion } from '../mcp/client.ts';
import type { SourcedEvent } from './exchange.ts';

/** Lets calls wait for answers of their clients, and continues them. */
export interface AskingCalls {
  /**
   * Passes on the events of an exchange. When the backend asks its client something, the call waits for it: the
   * subscriber gets one ClientQuestion and completes, and the exchange continues without a subscriber.
   * Unsubscribing before that cancels the exchange. `method` of the request is required to resume its call. Cold.
   * Errors: those of the exchange; QUEUE_FULL when too many wait.
   */
  follow(
    ownerId: string,
    method: string,
    events$: Observable<SourcedEvent>,
  ): Observable<SourcedEvent | ClientQuestion>;
  /**
   * Continues a waiting call: hands in the answers of the client, and emits what follows. Undefined when there is
   * no such call, it belongs to another owner or is of another `method`, or it is resumed already.
   */
  resume(
    id: string,
    ownerId: string,
    method: string,
    answers: ReadonlyMap<string, ClientAnswer>,
  ): Observable<SourcedEvent | ClientQuestion> | undefined;
}

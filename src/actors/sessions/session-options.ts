// The options of a session with one template, among them the cached lists of the template (CachedLists of src/protocol).

import type { Observable } from 'rxjs';
import type { Answer, ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { ClientProfile, ServerMessage } from '../../domain/mcp/client.ts';
import type { Handshake } from '../../domain/mcp/mcp.ts';
import type { SessionOpening } from '../../domain/sessions/session-value.ts';

/** `lists`: without them the backend answers all list requests. */
export interface SessionOptions extends SessionOpening {
  readonly lists?: SessionLists | undefined;
}

interface ListingSession {
  readonly profile: ClientProfile;
  readonly ownerId: string;
  readonly handshake: Handshake;
}

export interface SessionLists {
  /** One list request of a session that shares the instance's own conversation, from memory or by `load`. */
  exchangeIn(
    session: ListingSession,
    request: ExchangeRequest,
    load: () => Observable<Answer>,
  ): Observable<Answer>;
  /** The messages, with notices of changed lists as far as this backend announces them, and those for this owner alone. */
  withNotices(
    messages$: Observable<ServerMessage>,
    client: Pick<Handshake, 'capabilities'> & Pick<ListingSession, 'ownerId'>,
  ): Observable<ServerMessage>;
}

// What the gateway provides to its sessions, and the options of one with one template.

import type { Observable } from 'rxjs';
import type { ExchangeRequest, SourcedEvent } from '../../domain/calls/exchange.ts';
import type { ListReader } from '../../domain/lists/list-reader.ts';
import type { ServerMessage } from '../../domain/mcp/client.ts';
import type { Handshake } from '../../domain/mcp/mcp.ts';
import type { SessionOpening } from '../../domain/sessions/all-sessions.ts';
import type { McpSession } from '../../domain/sessions/mcp-session.ts';
import type { AnySessionValue } from '../../domain/sessions/session-value.ts';
import type { CallDeps } from '../calls/call-route.ts';
import type { Dispatcher } from '../calls/dispatcher.ts';

/** What the gateway provides to each of its sessions. */
export interface SessionDeps extends Omit<CallDeps, 'trace' | 'trustOf'> {
  readonly dispatcher: Dispatcher;
  readonly listReader: ListReader;
  /**
   * While it is in doubt whether this node still holds its sessions, as after a freeze: resolves when it is known.
   * Throws NODE_UNAVAILABLE. Undefined without a doubt. Default: there is none.
   */
  readonly untilLifeKnown?: (() => Promise<void> | undefined) | undefined;
  /**
   * True while the node is drained: no sessions are opened or claimed, but open ones may use further
   * templates. Default: never.
   */
  readonly isDraining?: (() => boolean) | undefined;
  /**
   * True while this node alone has no database, and other nodes may therefore end its life: no sessions are
   * opened. Default: never.
   */
  readonly isCutOff?: (() => boolean) | undefined;
}

/**
 * The options of a session with one template. `lists`: the cached lists of the template; without them the backend
 * answers all list requests.
 */
export interface SessionOptions extends SessionOpening {
  readonly lists?: SessionLists | undefined;
}

/** The cached lists of a template, implemented by TemplateLists of src/protocol. */
export interface SessionLists {
  /**
   * Answers one list request of a session that shares the transport of its instance: from memory, or with what `load`
   * brings.
   */
  exchangeIn(
    session: Pick<McpSession, 'value' | 'handshake'>,
    request: ExchangeRequest,
    load: () => Observable<SourcedEvent>,
  ): Observable<SourcedEvent>;
  /**
   * Adds notices of changed lists to the messages of a session: those that this backend announces, and those that
   * concern only this owner.
   */
  withNotices(
    messages$: Observable<ServerMessage>,
    client: Pick<Handshake, 'capabilities'> & Pick<AnySessionValue, 'ownerId'>,
  ): Observable<ServerMessage>;
}

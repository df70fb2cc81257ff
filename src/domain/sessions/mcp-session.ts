// The session of a legacy client, as the MCP endpoint uses it, and ClientSessions of src/actors, which owns it.
// ClientSession of src/actors (one template) and AggregateSession of src/protocol (an aggregate) implement it. Source: ADR 419.

import type { Observable } from 'rxjs';
import type { ExchangeRequest, SourcedEvent } from '../calls/exchange.ts';
import type { GatewayError } from '../errors/errors.ts';
import type { EndReason } from '../errors/session-ends.ts';
import type { JsonObject } from '../json/json.ts';
import type { ServerMessage } from '../mcp/client.ts';
import type { Handshake } from '../mcp/mcp.ts';
import type { AnySessionValue } from './session-value.ts';

/**
 * A session without a stream and without a message for this time ends as soon as another client needs its place or its
 * dedicated process. Source: ADR 69.
 */
export const REPLACEABLE_MS = 5 * 60_000;

/** The session of one legacy client: with one template and bound to one instance, or with an aggregate. */
export interface McpSession {
  /** The session id: visible ASCII with at least 128 random bits. It is a credential. */
  readonly id: string;
  /** The handshake of the backend to which the session is bound. */
  readonly handshake: Handshake;
  /** True when the session is bound to that instance; with an aggregate, when one of its parts is. */
  isAt(instanceId: string): boolean;
  /** True while the session shares the conversation of its instance with other clients. */
  readonly isShared: boolean;
  /** The longest wait for the client's answer to a question of the backend, in ms: a person may have to read first. */
  readonly questionMs: number;
  /**
   * Carries one request; cold. The session remembers the client state that another instance would need (log level,
   * subscriptions), and answers `logging/setLevel`, `resources/subscribe` and `resources/unsubscribe` itself where
   * its backend keeps no state per client. Errors with SESSION_NOT_FOUND when the session cannot continue: the client
   * has to open a new one. `instanceId`: the instance that runs the task of the request; `isAt` is true for it.
   */
  exchange(request: ExchangeRequest, instanceId?: string): Observable<SourcedEvent>;
  /**
   * Reserves a place at the instance that gave this answer, for a call that continues there; it counts as a call
   * under way. Must be called when the answer comes. `lost` is called at most once, perhaps before this returns, when
   * the call cannot continue anywhere; the reservation has then ended. Its error is BACKEND_UNAVAILABLE,
   * SESSION_NOT_FOUND, SHUTTING_DOWN, or QUEUE_FULL when too many calls wait for their client.
   * Undefined for an aggregate session, whose parts reserve.
   */
  reserve?(sourced: SourcedEvent, lost: (error: GatewayError) => void): Reservation;
  /**
   * Passes a notification of the client to the backend. The endpoint itself handles those about the handshake and
   * about cancelled requests. Throws QUEUE_FULL when waiting messages of the owner use too much memory.
   */
  notify(method: string, params: JsonObject): void;
  /**
   * The messages of the backend outside of any exchange. Hot; the backend's stream is open while there is a
   * subscriber. Completes when the session has ended. A subscription does not keep the session from expiring: see
   * `hold`.
   */
  readonly messages$: Observable<ServerMessage>;
  /** Resolves when the backend's stream is open, or cannot be opened; undefined while `messages$` has no subscriber. */
  readonly untilListening: Promise<void> | undefined;
  /** Keeps the session from becoming idle or expiring until the returned function is called, once. */
  hold(): () => void;
  /**
   * Sets whether the client is disconnected. While it is, a call of the session ends with QUEUE_FULL as soon as
   * another call waits for its capacity, and is cancelled at the backend.
   */
  setAway(isAway: boolean): void;
  /**
   * Stores the session, so that it outlives the gateway. From then on its changes are stored, too, and its end
   * deletes it. Resolves when the store agrees with the session, or with false when the store is away; undefined when
   * there is nothing to wait for.
   */
  untilStored(): Promise<boolean> | undefined;
  /** The session as plain data; a new object after each change. */
  readonly value: AnySessionValue;
  /**
   * The generation of a recovered session, which increases with each recovery; undefined for other sessions. See
   * FIRST_GENERATION.
   */
  readonly generation: number | undefined;
  /**
   * Emits the reason once when the session has ended (closed, expired or lost), then completes. Late subscribers get
   * it, too.
   */
  readonly ended$: Observable<EndReason>;
  /** Resolves when nothing is left of it. */
  close(reason?: EndReason): Promise<void>;

  // --- for its owner, ClientSessions: when it was used, whether it may expire, and who may continue it -------

  /**
   * The session ids of the parts of an aggregate session, which are sessions as well; undefined for a
   * session with one template.
   */
  readonly partIds?: readonly string[];
  /** True while a stream of the client is open. */
  readonly isStreaming: boolean;
  /** The number of calls under way. */
  readonly callCount: number;
  /** True when another node can continue the session as it is now. */
  readonly isRecoverable: boolean;
  readonly activity: SessionActivity;
  /** Releases resources that an idle session does not need. Returns false while the session is busy, and may not expire. */
  setIdle(): boolean;
  /** Ends the calls that wait between two rounds. Default: the session has none of its own. */
  dismiss?(error: GatewayError): void;
}

/**
 * The times at which a session was opened and last used, and whether it is idle. ClientSessions alone writes it.
 * Times are in whole ms of the gateway's monotonic clock: fractions in fields of thousands of sessions would be heap
 * objects of their own.
 */
export class SessionActivity {
  openedAtMs = 0;
  usedAtMs = 0;
  /** True some time after the last use: see `setIdle`. */
  isIdle = false;
}

/** A reservation for the next round of a call. */
export interface Reservation {
  /**
   * Carries a request like McpSession.exchange, at the instance of the call as long as its conversation lasts, even
   * when the instance is drained.
   */
  exchange(request: ExchangeRequest): Observable<SourcedEvent>;
  /** Ends the reservation, because the call is over. Idempotent. */
  leave(): void;
}

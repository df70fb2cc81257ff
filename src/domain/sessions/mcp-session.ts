// What the MCP endpoint sees of the session of a legacy client: the actors have one for each template, the aggregate
// one for several.

import type { Observable } from 'rxjs';
import type { Answer, ExchangeRequest } from '../calls/exchange.ts';
import type { GatewayError } from '../errors/errors.ts';
import type { JsonObject } from '../json/json.ts';
import type { ClientProfile, ServerMessage } from '../mcp/client.ts';
import type { Handshake } from '../mcp/mcp.ts';
import type { EndReason } from './session-ends.ts';
import type { AnySessionValue } from './session-value.ts';

/** The session of one legacy client: with one template, bound to one instance, or with several. The session table owns it. */
export interface McpSession {
  /** Visible ASCII, at least 128 random bits. */
  readonly id: string;
  /** Id of the principal that opened it. */
  readonly ownerId: string;
  readonly profile: ClientProfile;
  /** The backend that it is bound to. */
  readonly handshake: Handshake;
  /** True when it is bound to that instance, or, with several templates, its session with the template is. */
  isAt(instanceId: string): boolean;
  /** True while it shares the conversation of its instance with other clients. */
  readonly isShared: boolean;
  /** The instance it is or was bound to; undefined with several templates. */
  readonly instanceId?: string | undefined;
  /** The level of the latest `logging/setLevel`. */
  readonly logLevel: string | undefined;
  /** Longest wait for the answer of its client to a question of its backend: a person may have to read first. */
  readonly questionMs: number;
  /**
   * One request; cold. The session remembers the client state that another instance needs (log level, subscriptions), and
   * answers `logging/setLevel`, `resources/subscribe` and `resources/unsubscribe` itself where its backend has no state of
   * single clients. SESSION_NOT_FOUND when the session cannot continue: the client has to open a new one. `instanceId`: where
   * the task of the request is, and `isAt` is true.
   */
  exchange(request: ExchangeRequest, instanceId?: string): Observable<Answer>;
  /**
   * Makes a reservation at the instance that gave this answer, for a call that continues there: it counts as a call under way.
   * To be called when the answer comes. `lost` is called at most once, perhaps before this returns: the call cannot continue
   * anywhere, and the reservation is released. BACKEND_UNAVAILABLE, SESSION_NOT_FOUND, SHUTTING_DOWN; QUEUE_FULL where too
   * many calls wait for their client.
   */
  reserve(answer: Answer, lost: (error: GatewayError) => void): Reservation;
  /**
   * Passes a notification on; the endpoint itself takes those about the handshake and cancelled requests. Throws QUEUE_FULL when
   * messages of the owner that wait for backends use too much memory.
   */
  notify(method: string, params: JsonObject): void;
  /**
   * Messages of its backend outside of any exchange. Hot; the backend's stream is open while there is a subscriber. Completes
   * when the session has ended. A subscription does not keep the session from expiring: see `hold`.
   */
  readonly messages$: Observable<ServerMessage>;
  /** While `messages$` has a subscriber: resolves when the backend's stream is open, or cannot be opened. */
  readonly untilListening: Promise<void> | undefined;
  /** Keeps the session from being parked or expired until the returned function is called, once. */
  hold(): () => void;
  /**
   * Notes whether the client is disconnected. While it is, a call of the session ends with QUEUE_FULL as soon as another call
   * waits for its capacity; the call is cancelled at the backend, too.
   */
  setAway(isAway: boolean): void;
  /**
   * Stores the session, so that it outlives the gateway; what changes is stored, too, and its end deletes it.
   * Resolves when the store agrees with the session, its end included, or with false when it is away; undefined
   * when there is nothing to wait for.
   */
  keep?(): Promise<boolean> | undefined;
  /** What it is. */
  readonly value: AnySessionValue;
  /** How often a recovered session was recovered; undefined for others. See FIRST_GENERATION. */
  readonly generation?: number | undefined;
  /** Emits once when the session is over (closed, expired, lost), then completes; replayed. */
  readonly ended$: Observable<EndReason>;
  close(reason?: EndReason): Promise<void>;
}

/** A reservation for a call of several exchanges. */
export interface Reservation {
  /** Like McpSession.exchange, at the instance of the call as long as that lasts, drained or not. */
  exchange(request: ExchangeRequest): Observable<Answer>;
  /** The call is over. Idempotent. */
  leave(): void;
}

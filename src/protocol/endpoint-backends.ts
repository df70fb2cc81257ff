// The interfaces between the MCP endpoint and the gateway behind it. The endpoint knows the two protocol eras and their messages;
// actors on the other side of these interfaces own instances, sessions and processes.

import type { Observable } from 'rxjs';
import type { Answer, ExchangeRequest } from '../domain/calls/exchange.ts';
import type { GatewayError } from '../domain/errors/errors.ts';
import type { JsonObject } from '../domain/json/json.ts';
import type {
  Client,
  ClientProfile,
  ClientQuestion,
  ClientReply,
  Owner,
  ServerMessage,
  ServerNotification,
} from '../domain/mcp/client.ts';
import type { Handshake, Tool, WantedChanges } from '../domain/mcp/mcp.ts';
import type { PlacedInstance } from '../domain/nodes/forwarding.ts';
import type { EndReason } from '../domain/sessions/session-ends.ts';
import type { AnySessionValue, SessionOpening } from '../domain/sessions/session-value.ts';

/**
 * Everything behind one path: the instances of one template, or those of all templates that a caller may use, or
 * that a view has.
 */
export interface Backends {
  /** The handshake results of the healthy instances, else the last known ones; empty when none was ever connected. */
  handshakes(owner: Owner): readonly Handshake[];
  /**
   * Resolves when there are handshakes, or there is no reason to wait any longer: nothing is starting, or the
   * timeout of a call has passed. Undefined when there is no reason to wait at all. QUEUE_FULL.
   */
  whenStarted?(owner: Owner): Promise<void> | undefined;
  /** NO_HEALTHY_INSTANCE with the reasons of the instances, or TEMPLATE_NOT_FOUND; behind the path of one template. */
  noneHealthy?(): GatewayError;
  /** The ready instances, if another node runs each of them; else none. Behind the path of one template. */
  instancesElsewhere?(): readonly PlacedInstance[];
  /**
   * Opens a session for a legacy client, at an instance that the strategy chooses. NO_HEALTHY_INSTANCE, SESSION_LIMIT,
   * QUEUE_FULL, SHUTTING_DOWN, BACKEND_UNAVAILABLE.
   */
  openSession(owner: Owner, profile: ClientProfile, opening?: SessionOpening): Promise<McpSession>;
  /**
   * The session of that id at this path; the endpoint compares the owner. `owner`: the caller with its current permissions. A
   * session of that owner which was opened with others ends.
   */
  session(id: string, owner: Owner): McpSession | undefined;
  /**
   * Recovers a session of a life that is over, of this owner at this path: when it resolves, `session` knows it,
   * or it does not exist. Undefined when that is certain without a query. DATABASE_UNAVAILABLE, SESSION_LIMIT,
   * QUEUE_FULL, SHUTTING_DOWN.
   */
  recoverSession?(id: string, owner: Owner): Promise<void> | undefined;
  /**
   * One request of a client without a session; see StatelessOptions. Cold; unsubscribing cancels on the backend. The
   * errors of Dispatcher.exchange; SERVER_NOT_FOUND when `instanceId` is gone. A backend of the legacy era may ask its client
   * (`request` events).
   */
  exchange(request: ExchangeRequest, options: StatelessOptions): Observable<Answer>;
  /**
   * List changes, perhaps also of lists that are not wanted, and updates of the named resources, of all instances, later ones
   * included.
   * Cold: backends are subscribed to while there is a subscriber. Never errors; completes when the gateway closes,
   * or the template was deleted and nothing uses it any more.
   */
  changes(owner: Owner, profile: ClientProfile, wanted: WantedChanges): Observable<ServerNotification>;
  /** As an instance lists it. Without an owner only tools of one template are found: the permission was checked before. */
  tool(name: string, owner?: Owner): Tool | undefined;
  /**
   * The result of `tool` refused a call: the instance lists its tools again, once a second at most, for the next attempt of the
   * client.
   */
  relistTool(name: string, owner?: Owner): void;
}

/** The client of a request without a session, and the instance that must answer. */
export interface StatelessOptions extends Client {
  /** Only this instance may answer: it owns the state, the cursor or the task of the request. */
  readonly instanceId?: string | undefined;
}

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
   *  messages of the owner that wait for backends use too much memory. */
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
  /** Of a session that was recovered: how often it was. See FIRST_GENERATION. */
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

/** Calls of modern clients, in whose middle a legacy backend may ask its client something. */
export interface CallQuestions {
  /**
   * Passes on the events of an exchange. When the backend asks its client something, the call waits for it: the
   * subscriber gets one ClientQuestion and completes, and the exchange continues without a subscriber.
   * Unsubscribing before that cancels the exchange. `call` names the call, and is required to resume it. Cold.
   * Errors: those of the exchange; QUEUE_FULL when too many wait.
   */
  follow(owner: Owner, call: string, answers$: Observable<Answer>): Observable<Answer | ClientQuestion>;
  /**
   * Continues a waiting call: hands in the replies of the client, and emits what follows. Undefined when there is
   * no such call, it belongs to another owner or another `call`, or it is resumed already.
   */
  resume(
    id: string,
    owner: Owner,
    call: string,
    replies: ReadonlyMap<string, ClientReply>,
  ): Observable<Answer | ClientQuestion> | undefined;
}

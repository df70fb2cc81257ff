// What the MCP endpoint needs of the gateway behind it. The endpoint knows the two protocol eras and their messages;
// instances, sessions and processes are owned by actors on the other side of these interfaces.

import type { Observable } from 'rxjs';
import type { Principal } from '../domain/account.ts';
import type { ClientProfile, ClientReply, ServerMessage, ServerNotification } from '../domain/client.ts';
import type { GatewayError } from '../domain/errors.ts';
import type { Answer, ExchangeEvent, ExchangeRequest } from '../domain/exchange.ts';
import type { JsonObject } from '../domain/json.ts';
import type { ListField, Peer, Tool } from '../domain/mcp.ts';
import type { InputRequest } from './input-requests.ts';

/** Who is served: sessions, conversations and cached answers are never shared between two of them. */
export type Owner = Pick<Principal, 'id' | 'templates'>;

/** Everything behind one path: the instances of one template, or those of all templates a caller may use. */
export interface Backends {
  /**
   * What its instances said of themselves, one entry per healthy instance; while none is, what was last heard. Empty
   * when none was ever connected.
   */
  peers(owner: Owner): readonly Peer[];
  /**
   * Opens a session for a legacy client: an instance is chosen by the strategy and stays. NO_HEALTHY_INSTANCE,
   * SESSION_LIMIT, QUEUE_FULL, SHUTTING_DOWN, BACKEND_UNAVAILABLE. Aborting calls it off: it rejects, and nothing is left open.
   */
  openSession(owner: Owner, profile: ClientProfile, signal?: AbortSignal): Promise<McpSession>;
  /**
   * The session of that id, when it is one of this path; whose it is, is for the endpoint to compare. `owner`: who asks
   * for it, as he is now. What he may use no longer, his session ends.
   */
  session(id: string, owner: Owner): McpSession | undefined;
  /**
   * One request of a client without a session; see SessionlessOptions. Cold; unsubscribing cancels on the backend. The
   * errors of Dispatcher.exchange; SERVER_NOT_FOUND when the instance is gone that alone may answer. A backend of the legacy era may ask its client (`request` events).
   */
  exchange(request: ExchangeRequest, options: SessionlessOptions): Observable<Answer>;
  /**
   * Ids of the instances of the modern era that may go on with something: what those began is bound to no conversation.
   * Where all templates are one, of those that he may use and whose servers say that they run tasks, each in turn.
   */
  modernInstanceIds(owner: Owner): readonly string[];
  /**
   * A question of the gateway's own to one of `modernInstanceIds`. Cold; unsubscribing cancels it. Like a probe it is no
   * call: nobody counts it, waits in line for it, or judges the instance by it. SERVER_NOT_FOUND, BACKEND_UNAVAILABLE.
   */
  inquire(request: ExchangeRequest, of: InquiryOptions): Observable<ExchangeEvent>;
  /**
   * What changes on any instance, instances that come later included: list changes and updates of the named resources.
   * Cold: backends are subscribed to while somebody subscribes here. Never errors; completes when the gateway closes.
   */
  changes(owner: Owner, profile: ClientProfile, wanted: WantedChanges): Observable<ServerNotification>;
  /** Hot: an instance said that one of its lists changed; `resources` stands for their templates, too. */
  readonly listChanged$: Observable<ListField>;
  /**
   * The tool as an instance lists it; undefined when none is known to. Without an owner only the tools of one template
   * are known: he may use it, or would not have come so far.
   */
  tool(name: string, owner?: Owner): Tool | undefined;
  /**
   * The tool as each of the instances lists it, for who would refuse a call by what `tool` says: they are asked again first,
   * once for all who want to know at the same time. Without a promise when that was done just now, or cannot be. It resolves
   * after LIMITS.toolLookupMs at the latest, and never rejects.
   */
  relisted(name: string, owner?: Owner): readonly Tool[] | Promise<readonly Tool[]>;
}

/** A client as its backends are to know it. */
export interface Client {
  readonly owner: Owner;
  readonly profile: ClientProfile;
}

/** Who asks without a session, and whom. */
export interface SessionlessOptions extends Client {
  /** Only this instance may answer: it gave the state, the cursor or the task that the request is about. */
  readonly instanceId?: string | undefined;
}

/** On whose behalf an instance is asked something, and which. */
export interface InquiryOptions {
  readonly owner: Owner;
  readonly instanceId: string;
}

/** What a subscription of the modern era opts in to. */
export interface WantedChanges {
  readonly lists: ReadonlySet<ListField>;
  /** URIs of resources. */
  readonly resources: ReadonlySet<string>;
}

/** The session of one legacy client, bound to one instance; an actor owns it. */
export interface McpSession {
  /** Visible ASCII, at least 128 random bits. */
  readonly id: string;
  /** Id of the principal that opened it. */
  readonly ownerId: string;
  readonly profile: ClientProfile;
  /** The backend it is bound to at present. */
  readonly peer: Peer;
  /**
   * The session that is bound to that instance now: this one, or where all templates are one, what it has with that
   * instance's. Undefined when it is elsewhere.
   */
  at(instanceId: string): McpSession | undefined;
  /** True while its requests travel in the instance's own conversation, beside those of other clients. */
  readonly isShared: boolean;
  /** Where it is now, or was last; undefined where all templates are one. */
  readonly instanceId?: string | undefined;
  /** What `logging/setLevel` asked for last. */
  readonly logLevel: string | undefined;
  /**
   * One request; cold. The session remembers what has to be said again on another instance (log level, subscriptions)
   * and answers `logging/setLevel`, `resources/subscribe` and `resources/unsubscribe` itself where its backend keeps no
   * state of one client. SESSION_NOT_FOUND when the session cannot go on: the client has to open a new one.
   */
  exchange(request: ExchangeRequest): Observable<Answer>;
  /**
   * Keeps a place at the instance that gave this very answer, for a call that goes on there: it counts as a call under way.
   * To be asked for when the answer comes. `lost` is called at most once, perhaps before this returns: the call cannot go on
   * anywhere, and the place is given up. BACKEND_UNAVAILABLE, SESSION_NOT_FOUND, SHUTTING_DOWN; QUEUE_FULL where too many
   * calls wait for their client.
   */
  stay(answer: Answer, lost: (error: GatewayError) => void): Reservation;
  /** A notification of the client to its backend. */
  notify(method: string, params: JsonObject): void;
  /**
   * What its backend says outside of any exchange. Hot; the backend's stream is open while somebody subscribes. Completes
   * when the session has ended, which subscribing does not put off: see `hold`.
   */
  readonly messages$: Observable<ServerMessage>;
  /**
   * While somebody subscribes to `messages$`: resolves when the backend's stream for them is open, or will not be.
   * Undefined when there is nothing to wait for.
   */
  readonly opening: Promise<void> | undefined;
  /** Keeps the session from being parked or expired until the returned function is called. */
  hold(): () => void;
  /** The same for a call of its client that somebody else carries: closing waits for that as for its own, within the grace. */
  carry(): () => void;
  /**
   * Its client is away, or is back. While it is away, a call of the session ends with QUEUE_FULL as soon as another call waits
   * for its place; the backend is told.
   */
  setAway(isAway: boolean): void;
  /** Emits once when the session is over (closed, expired, lost), then completes; replayed. */
  readonly ended$: Observable<string>;
  /** Ends it for good, on the backend, too. */
  close(): Promise<void>;
}

/** The table of the sessions of one gateway, which an actor owns. It bounds, expires and ends them (ADR 83). */
export interface SessionTable {
  /** Adds an open session. SESSION_LIMIT, SHUTTING_DOWN. */
  add(session: TableSession): void;
  /** Looking it up is not using it. */
  findAny(id: string): unknown;
  /** A message of its client came, or what kept the session busy has ended. */
  used(session: TableSession): void;
  /** It is over. */
  remove(session: TableSession): void;
}

/** A session as its table sees it. The table writes `usedAtMs` and `isParked`. */
export interface TableSession {
  readonly id: string;
  readonly ownerId: string;
  usedAtMs: number;
  isParked: boolean;
  /** Calls under way. */
  readonly calls: number;
  /** False when it is in use and may not expire. */
  park(): boolean;
  /** Ends the calls that wait between two rounds. */
  dismiss(error: GatewayError): void;
  /** Ends it for good. Resolves when nothing is left of it. `reason` is a clause. */
  close(reason?: string): Promise<void>;
}

/** A place that is kept for a call of several exchanges. */
export interface Reservation {
  /** Like Session.exchange, at the instance where the call is for as long as that lasts, drained or not. */
  exchange(request: ExchangeRequest): Observable<Answer>;
  /** The call is over. Further times nothing happens. */
  leave(): void;
}

/** Calls of modern clients whose legacy backend waits for an answer of the client. */
export interface CallParking {
  /**
   * Passes the events of an exchange on. When the backend asks its client something, the exchange is parked: the
   * subscriber gets one `Asked` and the end, the exchange goes on without it. Unsubscribing before that cancels the
   * exchange. Errors: those of the exchange; QUEUE_FULL when too many are parked.
   */
  follow(owner: Owner, call: string, answers$: Observable<Answer>): Observable<Answer | ClientQuestion>;
  /**
   * Goes on with a parked call: hands in what the client answered, and emits what follows. Undefined when there is no such
   * call, it is another's (`owner`, `call`), or it is resumed already.
   */
  resume(
    id: string,
    owner: Owner,
    call: string,
    replies: ReadonlyMap<string, ClientReply>,
  ): Observable<Answer | ClientQuestion> | undefined;
}

/** A backend waits for its client. */
export interface ClientQuestion {
  readonly kind: 'asked';
  /** Names the parked call. */
  readonly id: string;
  /** Of the backend. */
  readonly instanceId: string;
  /** What it wants to know, by a key that the replies are to carry. */
  readonly requests: ReadonlyMap<string, InputRequest>;
}

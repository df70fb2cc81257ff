// The interfaces between the MCP endpoint and the gateway behind it. The endpoint knows the two protocol eras and their messages;
// actors on the other side of these interfaces own instances, sessions and processes.

import type { Observable } from 'rxjs';
import type { Answer, ExchangeRequest } from '../domain/calls/exchange.ts';
import type { GatewayError } from '../domain/errors/errors.ts';
import type { Client, ClientProfile, Owner, ServerNotification } from '../domain/mcp/client.ts';
import type { Handshake, Tool, WantedChanges } from '../domain/mcp/mcp.ts';
import type { PlacedInstance } from '../domain/nodes/forwarding.ts';
import type { McpSession } from '../domain/sessions/mcp-session.ts';
import type { SessionOpening } from '../domain/sessions/session-value.ts';

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
   * List changes, perhaps also of lists that are not wanted, and updates of the named resources, of all instances,
   * later ones included. Cold: backends are subscribed to while there is a subscriber. Never errors; completes when
   * the gateway closes, or the template was deleted and nothing uses it any more.
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

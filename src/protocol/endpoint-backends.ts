// The interfaces between the MCP endpoint and the gateway behind it. The endpoint knows the two protocol eras and their
// messages; the actors behind these interfaces own instances, sessions and processes.

import type { Observable } from 'rxjs';
import type { ExchangeRequest, SourcedEvent } from '../domain/calls/exchange.ts';
import type { GatewayError } from '../domain/errors/errors.ts';
import type { ClientProfile, Notification, Owner, StatelessOptions } from '../domain/mcp/client.ts';
import type { Handshake, Tool, WantedChanges } from '../domain/mcp/mcp.ts';
import type { InstanceOnNode } from '../domain/nodes/forwarding.ts';
import type { SessionOpening } from '../domain/sessions/all-sessions.ts';
import type { McpSession } from '../domain/sessions/mcp-session.ts';

/** All that is behind one path: the instances of one template, of all templates that a caller may use, or of a view. */
export interface Backends {
  /** The handshakes of the healthy instances, otherwise the last known ones; empty when none was ever connected. */
  handshakes(owner: Owner): readonly Handshake[];
  /**
   * Resolves when there are handshakes, or no reason to wait any longer: nothing is starting, or the timeout of a
   * call has passed. Undefined when there is no reason to wait at all. Throws QUEUE_FULL.
   */
  untilStarted?(owner: Owner): Promise<void> | undefined;
  /**
   * Throws NO_HEALTHY_INSTANCE with the reasons of the instances, or TEMPLATE_NOT_FOUND. Only for the path of one
   * template.
   */
  noHealthyError?(): GatewayError;
  /** The ready instances if other nodes run all of them; otherwise none. Only for the path of one template. */
  instancesElsewhere?(): readonly InstanceOnNode[];
  /**
   * Opens a session for a legacy client, at an instance that the strategy chooses. Throws NO_HEALTHY_INSTANCE,
   * SESSION_LIMIT, QUEUE_FULL, SHUTTING_DOWN or BACKEND_UNAVAILABLE.
   */
  openSession(owner: Owner, profile: ClientProfile, opening?: SessionOpening): Promise<McpSession>;
  /**
   * The session with that id at this path; the endpoint compares the owner. `owner`: the caller with its
   * current permissions. A session of that owner that was opened with other permissions ends.
   */
  session(id: string, owner: Owner): McpSession | undefined;
  /**
   * Recovers a session of this owner at this path, which a life that is over had opened. When it resolves, `session` finds
   * the session, or there is none; undefined when it is certain without a query that there is none. Throws
   * DATABASE_UNAVAILABLE, SESSION_LIMIT, QUEUE_FULL or SHUTTING_DOWN.
   */
  recoverSession(id: string, owner: Owner): Promise<void> | undefined;
  /**
   * Carries one request of a client without a session; see StatelessOptions. Cold; unsubscribing cancels it on the
   * backend. Errors like Dispatcher.exchange, and with SERVER_NOT_FOUND when `instanceId` is gone. A backend of the
   * legacy era may ask the client (`request` events).
   */
  exchange(request: ExchangeRequest, options: StatelessOptions): Observable<SourcedEvent>;
  /**
   * Emits changes of lists, at any rate and perhaps also of lists that are not wanted, and updates of the named resources, of all
   * present and later instances. Cold: backends are subscribed while there is a subscriber. Never errors; completes
   * when the gateway closes, or when the template was deleted and is not in use any more.
   */
  changes(owner: Owner, profile: ClientProfile, wanted: WantedChanges): Observable<Notification>;
  /**
   * A tool as an instance lists it; undefined when none does, or the owner may not call it. Without an owner
   * only tools of one template are found: the permission was checked before.
   */
  tool(name: string, owner?: Owner): Tool | undefined;
  /**
   * Lets the instance list its tools again, at most once a second, after the result of `tool` led to the refusal of a
   * call: the next attempt of the client may then succeed.
   */
  relistTool(name: string, owner?: Owner): void;
}

// The interfaces between the table of all legacy sessions of a gateway (actors/sessions/client-sessions.ts) and the two
// kinds of sessions in it: those with one template, and those with several
// (protocol/aggregate/sessions/aggregate-session.ts). Source: ADR 70.

import type { GatewayError } from '../errors/errors.ts';
import type { McpSession } from './mcp-session.ts';
import type { EndReason } from './session-ends.ts';
import type { SessionRow } from './session-row.ts';
import type { AnySessionValue } from './session-value.ts';

/** The table of all sessions: bounds their number, and ends them, also when they expire. */
export interface SessionTable {
  /** Returns the id of a new session. */
  newId(): string;
  /**
   * Adds the open session of a client with several templates. `mayEndOthers`: sessions of absent clients may be ended
   * to make room. Default: true. Throws SESSION_LIMIT, SHUTTING_DOWN or NODE_UNAVAILABLE.
   */
  add(session: SessionRecord, mayEndOthers?: boolean): void;
  /** Returns the open session of either kind with this id. Does not count as a use. */
  findAny(id: string): SessionRecord | undefined;
  /** Reports that a message of its client came, or that a use of the session, such as a call, has begun or ended. */
  used(session: SessionRecord): void;
  /** Removes a session of either kind that is over. `isLost`: see Ending in events.ts. Default: false. */
  remove(session: SessionRecord, reason: EndReason, isLost?: boolean): void;
  /**
   * Makes the row of a session, so that it outlives the gateway; undefined when sessions are not stored. `isStored`:
   * the session was read from this row.
   */
  keep(session: SessionRecord, isStored?: boolean): SessionRow | undefined;
  /**
   * Recovers a session of a life that is over, for this owner. Resolves when it is open, or when it does not exist;
   * undefined when that is certain without a query. Rejects with DATABASE_UNAVAILABLE, SESSION_LIMIT, QUEUE_FULL or
   * SHUTTING_DOWN.
   */
  recover(id: string, ownerId: string, prepare: PrepareRecovery): Promise<void> | undefined;
  /** Returns true when the row of a session that ends for this reason stays, for the next life or for other nodes. */
  leavesRow(reason: EndReason): boolean;
}

/** A session of a client in the table of sessions. The table writes `openedAtMs`, `usedAtMs` and `isParked`. */
export interface SessionRecord extends Pick<McpSession, 'id' | 'ownerId' | 'profile' | 'value' | 'close'> {
  /**
   * The session ids of the parts of a session with several templates, which are in the table as well; undefined for a
   * session with one template.
   */
  readonly innerSessionIds?: readonly string[];
  /** True while a stream of the client is open. */
  readonly isStreaming: boolean;
  readonly calls: number;
  /** True when another node can continue the session as it is now. Default: false. */
  readonly isRecoverable?: boolean;
  /** The time of its opening, in ms of the gateway's monotonic clock, like `usedAtMs`. */
  openedAtMs: number;
  usedAtMs: number;
  isParked: boolean;
  /** Releases resources that an idle session does not need. Returns false while the session is busy, and may not expire. */
  park(): boolean;
  /** Ends the calls that wait between two rounds. Default: the session has none of its own. */
  dismiss?(error: GatewayError): void;
}

/**
 * Prepares the recovery of a stored session. Resolves with the function that makes the session again once its row is
 * claimed; undefined when the session belongs to another path. Rejects with SESSION_NOT_FOUND or TEMPLATE_NOT_FOUND
 * when the session cannot be recovered: its row is then deleted.
 */
export type PrepareRecovery = (value: AnySessionValue) => Promise<((generation: number) => void) | undefined>;

// All legacy sessions of a gateway, as the two kinds of sessions use them: those with one template, and aggregate ones.
// ClientSessions of src/actors implements it. Source: ADR 70.

import type { EndReason } from '../errors/session-ends.ts';
import type { McpSession } from './mcp-session.ts';
import type { SessionRow, UnsafeMark } from './session-row.ts';
import type { AnySessionValue } from './session-value.ts';

/** All sessions of a gateway: bounds their number, and ends them, also when they expire. */
export interface AllSessions {
  /** The id of a new session. */
  newId(): string;
  /**
   * Adds the open aggregate session of a client. `mayEndOthers`: sessions of absent clients may be ended
   * to make room. Default: true. Throws SESSION_LIMIT, SHUTTING_DOWN or NODE_UNAVAILABLE.
   */
  add(session: McpSession, mayEndOthers?: boolean): void;
  /** The open session of either kind with this id. Does not count as a use. */
  findAny(id: string): McpSession | undefined;
  /** Reports that a message of its client came, or that a use of the session, such as a call, has begun or ended. */
  used(session: McpSession): void;
  /** Removes a session of either kind that is over. `isLost`: see Ending in events.ts. Default: false. */
  remove(session: McpSession, reason: EndReason, isLost?: boolean): void;
  /**
   * Makes the row of a session, so that it outlives the gateway; undefined when sessions are not stored. `isStored`:
   * the session was read from this row.
   */
  keep(session: McpSession, isStored?: boolean): SessionRow | undefined;
  /**
   * Recovers a session of a life that is over, for this owner. Resolves when it is open, or when it does not exist;
   * undefined when that is certain without a query. Rejects with DATABASE_UNAVAILABLE, SESSION_LIMIT, QUEUE_FULL or
   * SHUTTING_DOWN.
   */
  recover<V extends AnySessionValue>(
    id: string,
    ownerId: string,
    steps: RecoverySteps<V>,
  ): Promise<void> | undefined;
  /** True when the row of a session that ends for this reason stays, for the next life or for other nodes. */
  leavesRow(reason: EndReason): boolean;
}

/** What an endpoint does to recover a stored session of its own. */
export interface RecoverySteps<V extends AnySessionValue> {
  /** False when the session belongs to another path: it is then left alone. */
  isOwn(value: AnySessionValue): value is V;
  /**
   * Called before the row is claimed. Rejects with SESSION_NOT_FOUND or TEMPLATE_NOT_FOUND when the session cannot be
   * recovered: its row is then deleted; and with SESSION_LIMIT.
   */
  check(value: V): Promise<void>;
  /** Makes the session again, once this life has claimed its row in this generation. */
  make(value: V, generation: number): void;
}

/** The options of an opening. */
export interface SessionOpening {
  /** The id of the new session. Default: AllSessions makes one. */
  readonly id?: string | undefined;
  /** Aborting it rejects the opening; no session is left open then. */
  readonly signal?: AbortSignal | undefined;
  /**
   * For a part of an aggregate session: where another session would end, it begins anew at an instance.
   * Undefined for other sessions.
   */
  readonly part?: SessionPart | undefined;
}

/** What a part has from the whole session. */
interface SessionPart {
  /** The mark of a stored session. */
  readonly unsafeMark: UnsafeMark | undefined;
  readonly isRecovered: boolean;
}

// All legacy sessions of a gateway, and the row of one, as the two kinds of sessions use them: those with one template, and
// aggregate ones. ClientSessions and StoredRow of src/actors implement them. Source: ADR 70.

import type { EndReason } from '../errors/session-ends.ts';
import type { McpSession } from './mcp-session.ts';
import type { AnySessionValue } from './session-value.ts';

/** Where an open session comes from: its client opened it, or its row was claimed. */
export type SessionOrigin = 'new' | 'recovered';

/** All sessions of a gateway: bounds their number, and ends them, also when they expire. */
export interface AllSessions {
  /** The id of a new session. */
  newId(): string;
  /**
   * Adds the open aggregate session of a client. For a new one the session of an absent client may end, to make room. Throws
   * SESSION_LIMIT, SHUTTING_DOWN or, for a new one, NODE_UNAVAILABLE.
   */
  add(session: McpSession, origin: SessionOrigin): void;
  /** The open session of either kind with this id. Does not count as a use. */
  findAny(id: string): McpSession | undefined;
  /** Reports that a message of its client came, or that a use of the session, such as a call, has begun or ended. */
  used(session: McpSession): void;
  /** Removes a session of either kind that is over. `isLost`: see ClientEndFields in events.ts. Default: false. */
  remove(session: McpSession, reason: EndReason, options?: { readonly isLost: boolean }): void;
  /**
   * Makes the row of a session, so that it outlives the gateway; undefined when sessions are not stored. The store has
   * that of a recovered session already.
   */
  rowFor(session: McpSession, origin: SessionOrigin): SessionRow | undefined;
  /**
   * Recovers a session of a life that is over, for this owner. Resolves when it is open, or when it does not exist;
   * undefined when that is certain without a query. Throws DATABASE_UNAVAILABLE, SESSION_LIMIT, QUEUE_FULL or
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

/** The row of one session in the store, as the session uses it. Only sessions with one template use its mark. */
export interface SessionRow extends UnsafeMark {
  readonly isStored: boolean;
  /** Reports that the session has changed. */
  changed(): void;
  /**
   * Resolves when the row agrees with the session, or with false when the client should not wait any longer;
   * undefined when the row agrees already.
   */
  save(): Promise<boolean> | undefined;
  /**
   * Reports that the session is over on this node. `isLeft`: the row stays for other lives, unless the client ended
   * the session.
   */
  end(reason: EndReason, isLeft: boolean): void;
}

/**
 * The mark in the stored row of a session: it made a call that is not safe to repeat, or, where the session may not
 * move at all, any call. The mark is written before that call is sent.
 */
export interface UnsafeMark {
  /** True while the mark is neither written nor given up: a call that needs it has to wait for `writeMark`. */
  readonly isUnmarked: boolean;
  /**
   * Writes the mark, for good. Resolves when it is written, or when a client should not wait any longer (after 5 s,
   * or 250 ms while the database is away); undefined when there is nothing to wait for.
   */
  writeMark(): Promise<void> | undefined;
}

/** The steps with which an endpoint recovers a stored session of its own. */
export interface RecoverySteps<V extends AnySessionValue> {
  /** False when the session belongs to another path: it is then left alone. */
  isOwn(value: AnySessionValue): value is V;
  /**
   * Called before the row is claimed. Throws SESSION_NOT_FOUND or TEMPLATE_NOT_FOUND when the session cannot be recovered:
   * its row is then deleted; and SESSION_LIMIT.
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
   * The facts about the whole session, for a part of an aggregate session: where another session would end, the part
   * begins again at an instance. Undefined for other sessions.
   */
  readonly part?:
    | {
        /** The mark of a stored session. */
        readonly unsafeMark: UnsafeMark | undefined;
        readonly isRecovered: boolean;
      }
    | undefined;
}

// What the table of all legacy sessions of a gateway (actors/sessions/client-sessions.ts) and the two kinds of
// sessions in it know of each other: those with one template, and those with several
// (protocol/aggregate/sessions/aggregate-session.ts). Source: ADR 70.

import type { GatewayError } from '../errors/errors.ts';
import type { ClientProfile } from '../mcp/client.ts';
import type { EndReason } from './session-ends.ts';
import type { AnySessionValue, StorableSession, UnsafeMark } from './session-value.ts';

/** Bounds, expires and ends the sessions. */
export interface SessionTable {
  /** The id of a new session. */
  newId(): string;
  /**
   * Adds the open session of a client with several templates. `mayEndOthers`: those of absent clients, to make
   * room. Default true. SESSION_LIMIT, SHUTTING_DOWN, NODE_UNAVAILABLE.
   */
  add(session: SessionRecord, mayEndOthers?: boolean): void;
  /** A session of either kind. A lookup is not a use. */
  findAny(id: string): SessionRecord | undefined;
  /** A message of its client came, or a use of the session ended. */
  used(session: SessionRecord): void;
  /** The session of either kind is over. `isLost`: see Ending in events.ts. Default false. */
  remove(session: SessionRecord, reason: EndReason, isLost?: boolean): void;
  /**
   * A row for the session, so that it outlives the gateway; undefined where nothing does. `isStored`: it was read
   * from its row.
   */
  keep(session: StorableSession, isStored?: boolean): OwnRow | undefined;
  /**
   * Recovers a session of a life that is over, of this owner. Resolves when it is open, or does not exist; undefined when that is
   * certain without a query. DATABASE_UNAVAILABLE, SESSION_LIMIT, QUEUE_FULL, SHUTTING_DOWN.
   */
  recover(id: string, ownerId: string, prepare: PrepareRecovery): Promise<void> | undefined;
  /** The row of a session that ends for this reason stays for the next life, or for other nodes. */
  leavesRow(reason: EndReason): boolean;
}

/** A session of a client in the table of sessions, which writes `openedAtMs`, `usedAtMs` and `isParked`. */
export interface SessionRecord {
  readonly id: string;
  readonly ownerId: string;
  readonly profile: ClientProfile;
  /** Ids of the sessions with single templates of a session with several, which are in the table, too; else undefined. */
  readonly innerSessionIds?: readonly string[];
  /** A stream of its client is open. */
  readonly isStreaming: boolean;
  readonly calls: number;
  /** Another node can continue it as it is now. Default false. */
  readonly isRecoverable?: boolean;
  /** In ms of the gateway's monotonic clock, as `usedAtMs`. */
  openedAtMs: number;
  usedAtMs: number;
  isParked: boolean;
  /** Releases resources that an idle session does not need. False while it is busy and may not expire. */
  park(): boolean;
  /** Ends the calls that wait between two rounds. Default: it has none of its own. */
  dismiss?(error: GatewayError): void;
  /** Ends the session. Resolves when nothing is left of it. */
  close(reason?: EndReason): Promise<void>;
}

/** The row of a session in the store, as the session uses it. The mark is for sessions with one template. */
export interface OwnRow extends UnsafeMark {
  readonly isStored: boolean;
  /** The session has changed. */
  changed(): void;
  /** Resolves when the row agrees with the session, or with false when its client waits no longer; undefined when it does. */
  save(): Promise<boolean> | undefined;
  /** The session is over here. `isLeft`: its row stays for other lives, unless its client ended it. */
  end(reason: EndReason, isLeft: boolean): void;
}

/**
 * Decides about a stored session of this caller: undefined when it belongs to another path; otherwise what makes
 * it again once its row is claimed. Rejects with SESSION_NOT_FOUND or TEMPLATE_NOT_FOUND when it cannot be
 * recovered: then its row is deleted.
 */
export type PrepareRecovery = (value: AnySessionValue) => Promise<((generation: number) => void) | undefined>;

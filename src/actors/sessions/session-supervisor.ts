// What a session and its table know of each other: its handle and its actor see no more of them.

import type { Ending } from '../../domain/events.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import type { SessionRecord, SessionTable } from '../../domain/session-table.ts';
import type { LeaseHolder } from '../instances/conversation.ts';
import type { Binder, SessionDeps } from './binder.ts';
import type { Binding } from './binding.ts';
import type { RestingSession } from './client-session.machine.ts';
import type { SessionKeeper } from './session-keeper.ts';

/** An instance that a session is or was bound to. */
export type BoundInstance = Pick<InstanceDefinition, 'template' | 'id' | 'serverId'>;

/** The session whose actor it is. */
export interface BoundSession extends SessionRecord {
  readonly awaySinceMs: LeaseHolder['awaySinceMs'];
  /** The instance of the present or last binding. */
  readonly instance: BoundInstance;
  readonly isListened: boolean;
  /** True while calls are under way at the binding, or between two rounds there. */
  readonly isCalling: boolean;
  /** The session has this binding from now on. It has detached from the previous one when this returns. */
  moved(binding: Binding, from: RestingSession): void;
  /** The session has ended; its binding is closed after this returns. */
  ended(ending: Ending): void;
}

/** The table of the session, with the reports that it gets. */
export interface SessionSupervisor extends Pick<SessionTable, 'leavesRow' | 'used'> {
  readonly deps: SessionDeps;
  readonly binder: Binder;
  /** Undefined where nothing outlives the gateway. */
  readonly keeper: SessionKeeper | undefined;
  moved(session: BoundSession, from: BoundInstance): void;
  ended(session: BoundSession, ending: Ending): void;
}

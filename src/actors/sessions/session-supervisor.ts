// What the handle and the actor of a session see of it.

import type { Ending } from '../../domain/events.ts';
import type { SessionRecord } from '../../domain/sessions/session-table.ts';
import type { LeaseHolder } from '../instances/conversation.ts';
import type { Binding } from './binding.ts';
import type { RestingSession } from './client-session.machine.ts';

/** The session whose actor it is. */
export interface BoundSession extends SessionRecord {
  readonly awaySinceMs: LeaseHolder['awaySinceMs'];
  readonly isListened: boolean;
  /** True while calls are under way at the binding, or between two rounds there. */
  readonly isCalling: boolean;
  /** The session has this binding from now on. It has detached from the previous one when this returns. */
  moved(binding: Binding, from: RestingSession): void;
  /** The session has ended; its binding is closed after this returns. */
  ended(ending: Ending): void;
}

// Interfaces of the sessions of legacy clients: to the rest of the gateway, and between their parts. Types only. Ownership: the
// table owns the sessions (client-sessions.ts), a session owns its binding, a dedicated binding owns its conversation, and with
// that a session or a process of the backend.

import type { Observable } from 'rxjs';
import type { ClientProfile, ServerMessage, SessionRecord } from '../../domain/client.ts';
import type { Clock } from '../../domain/clock.ts';
import type { GatewayEvent } from '../../domain/events.ts';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { Dispatcher } from '../calls/dispatcher.ts';
import type { Fleet } from '../fleet.ts';
import type { LeaseHolder } from '../instances/conversation.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { Binding } from './bindings.ts';

export interface SessionDeps extends Clock {
  readonly fleet: Pick<Fleet, 'group' | 'has' | 'root'>;
  readonly dispatcher: Pick<Dispatcher, 'carry'>;
  /** For tasks that come due by the thousand. */
  readonly scheduler: TaskScheduler;
  readonly emit: (event: GatewayEvent) => void;
  /** False while the gateway closes: no session is opened, and no call of one begins. */
  readonly isAccepting: () => boolean;
}

/** The lists of a template in memory, for its sessions: CachedLists in src/protocol. */
export interface SessionLists {
  /** One list request of the session, from memory or by `load`. `isShared`: it travels in the instance's own conversation. */
  exchangeIn(
    session: Pick<SessionRecord, 'profile' | 'ownerId'> & { readonly peer: Peer; readonly isShared: boolean },
    request: ExchangeRequest,
    load: () => Observable<Answer>,
  ): Observable<Answer>;
  /** The messages, with notices of changed lists as far as this backend announces them. */
  withNotices(messages$: Observable<ServerMessage>, greeted: Peer): Observable<ServerMessage>;
}

/** The session of a binding. */
export interface BoundSession extends LeaseHolder {
  readonly template: string;
  readonly ownerId: string;
  readonly profile: ClientProfile;
  readonly isListened: boolean;
  /** True while calls are under way at the binding, or between two rounds there. */
  readonly isCalling: boolean;
  /** The session has this binding from now on. It has detached from the previous one, at `from`, when this returns. */
  moved(binding: Binding, from: InstanceRef | undefined): void;
  /** The session has ended; its binding is closed after this returns. */
  ended(reason: string): void;
}

// What the gateway provides to its sessions, whether new ones are opened, and the options of one with one template.

import type { Observable } from 'rxjs';
import type { Answer, ExchangeRequest } from '../../domain/calls/exchange.ts';
import type { GatewayEvent } from '../../domain/events.ts';
import type { ClientProfile, ServerMessage } from '../../domain/mcp/client.ts';
import type { Handshake } from '../../domain/mcp/mcp.ts';
import type { ListMemory } from '../../domain/memory/list-memory.ts';
import type { SessionOpening } from '../../domain/sessions/session-value.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { Dispatcher } from '../calls/dispatcher.ts';
import type { RetryBudget } from '../calls/retries.ts';
import type { Fleet } from '../fleet.ts';

/** What the gateway provides to each of its sessions. */
export interface SessionDeps extends Clock {
  readonly fleet: Pick<Fleet, 'group' | 'has' | 'hold' | 'release' | 'root'>;
  readonly dispatcher: Pick<Dispatcher, 'carry'>;
  /** Bounds second openings, as it bounds second attempts of calls. */
  readonly budget: Pick<RetryBudget, 'countCall' | 'hasRoom' | 'take'>;
  /** For tasks that come due by the thousand. */
  readonly scheduler: TaskScheduler;
  readonly listMemory: ListMemory;
  readonly emit: (event: GatewayEvent) => void;
  /** False while the gateway closes: no session is opened, and no call of one begins. */
  readonly isAccepting: () => boolean;
  /** As in DeadlineDeps. */
  readonly maxCallMs?: number | undefined;
}

/** Whether new sessions are opened, and those of other nodes claimed. */
export interface SessionAdmission {
  /** True while no sessions of clients are opened, nor claimed; those that are open may use further templates. Default: never. */
  readonly isDraining?: (() => boolean) | undefined;
  /**
   * True while other nodes may end the life of this one, because it alone has no database: no sessions of clients
   * are opened. Default: never.
   */
  readonly isCutOff?: (() => boolean) | undefined;
}

/** The options of a session with one template. `lists`: without them the backend answers all list requests. */
export interface SessionOptions extends SessionOpening {
  readonly lists?: SessionLists | undefined;
}

interface ListingSession {
  readonly profile: ClientProfile;
  readonly ownerId: string;
  readonly handshake: Handshake;
}

/** The cached lists of the template (CachedLists of src/protocol). */
export interface SessionLists {
  /** One list request of a session that shares the instance's own conversation, from memory or by `load`. */
  exchangeIn(
    session: ListingSession,
    request: ExchangeRequest,
    load: () => Observable<Answer>,
  ): Observable<Answer>;
  /** The messages, with notices of changed lists as far as this backend announces them, and those for this owner alone. */
  withNotices(
    messages$: Observable<ServerMessage>,
    client: Pick<Handshake, 'capabilities'> & Pick<ListingSession, 'ownerId'>,
  ): Observable<ServerMessage>;
}

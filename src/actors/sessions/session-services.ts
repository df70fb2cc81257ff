// What the gateway provides to its sessions, and whether new ones are opened.

import type { GatewayEvent } from '../../domain/events.ts';
import type { ListMemory } from '../../domain/memory/list-memory.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { Dispatcher } from '../calls/dispatcher.ts';
import type { RetryBudget } from '../calls/retries.ts';
import type { Fleet } from '../fleet.ts';

/** What the gateway provides to each of its sessions. */
export interface SessionServices extends Clock {
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
  /** True while other nodes may end the life of this one, because it alone has no database: no sessions of clients are opened. Default: never. */
  readonly isCutOff?: (() => boolean) | undefined;
}

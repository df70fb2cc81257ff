// Counts from the event stream what MCP clients have open, and how it ended: a subscriber like metrics.ts. It looks nothing up
// when an event comes, and stores nothing.

import type { Observable, Subscription } from 'rxjs';
import type { GatewayEvent, GatewayEvents } from '../domain/events.ts';
import { TRANSPORT_TRAITS, type TransportKind } from '../domain/instance.ts';

/** A process that runs for a single client. */
interface OwnProcess {
  readonly pid: number;
  /** Id of the principal of that client. */
  readonly principal: string;
}

/** What clients have at one instance now. */
export interface InstanceClients {
  /** Sessions that are bound to it, parked ones included. */
  readonly sessions: number;
  /** Processes that it runs for single clients, with a session or without. */
  readonly ownProcesses: number;
  /** The same, one by one: those whose process id is known, oldest first. */
  readonly processes: readonly OwnProcess[];
}

/** Since the gateway started; `open` and `running` are those of now. */
export interface ClientCounts {
  /** `ended` includes those that were lost: open = opened - ended. */
  readonly sessions: {
    readonly open: number;
    readonly opened: number;
    readonly ended: number;
    readonly lost: number;
    readonly moved: number;
  };
  /** Processes of single clients. `lost`: they ended by themselves. */
  readonly ownProcesses: { readonly running: number; readonly started: number; readonly lost: number };
}

/** One template's, as they grow. */
interface ClientTally {
  opened: number;
  ended: number;
  lost: number;
  moved: number;
  started: number;
  stopped: number;
  lostProcesses: number;
}

/** One instance's, as they come and go. */
interface Present {
  sessions: number;
  ownProcesses: number;
  /** The owner of each process, by its id. Made with the first one. */
  owners: Map<number, string> | undefined;
}

const NO_CLIENTS: InstanceClients = { sessions: 0, ownProcesses: 0, processes: [] };

export class ClientMetrics {
  readonly #templates = new Map<string, ClientTally>();
  /** By server id; those where anything is open. What was counted up is counted down under the same id. */
  readonly #instances = new Map<string, Present>();
  readonly #subscription: Subscription;

  constructor(events$: Observable<GatewayEvent>) {
    this.#subscription = events$.subscribe((event) => this.#count(event));
  }

  /** The number of instances with anything open; for specs that look for leaks. */
  get size(): number {
    return this.#instances.size;
  }

  /** By template: of those that ever had a session or a process of a client. */
  counts(): ReadonlyMap<string, ClientCounts> {
    return new Map([...this.#templates].map(([template, tally]) => [template, countsOf(tally)]));
  }

  /** At the instance of that server id. */
  at(serverId: string): InstanceClients {
    const present = this.#instances.get(serverId);
    if (present === undefined) return NO_CLIENTS;
    const { sessions, ownProcesses, owners = [] } = present;
    return { sessions, ownProcesses, processes: [...owners].map(([pid, principal]) => ({ pid, principal })) };
  }

  close(): void {
    this.#subscription.unsubscribe();
  }

  #count(event: GatewayEvent): void {
    switch (event.type) {
      case 'session.opened':
        this.#tallyOf(event.template).opened += 1;
        this.#change(event.serverId, 1, 0);
        break;
      case 'session.moved':
        this.#tallyOf(event.template).moved += 1;
        this.#change(event.fromServerId, -1, 0);
        this.#change(event.serverId, 1, 0);
        break;
      case 'session.ended': {
        const tally = this.#tallyOf(event.template);
        tally.ended += 1;
        if (event.isLost) tally.lost += 1;
        this.#change(event.serverId, -1, 0);
        break;
      }
      case 'upstream.opened':
        if (!isProcess(event)) break;
        this.#tallyOf(event.template).started += 1;
        this.#appear(event);
        break;
      case 'upstream.ended': {
        if (!isProcess(event)) break;
        const tally = this.#tallyOf(event.template);
        tally.stopped += 1;
        if (event.isLost) tally.lostProcesses += 1;
        this.#disappear(event);
        break;
      }
    }
  }

  #tallyOf(template: string): ClientTally {
    const known = this.#templates.get(template);
    if (known !== undefined) return known;
    const tally = { opened: 0, ended: 0, lost: 0, moved: 0, started: 0, stopped: 0, lostProcesses: 0 };
    this.#templates.set(template, tally);
    return tally;
  }

  #appear({ serverId, pid, principal }: GatewayEvents['upstream.opened']): void {
    const present = this.#change(serverId, 0, 1);
    if (pid === undefined) return;
    present.owners ??= new Map();
    present.owners.set(pid, principal);
  }

  #disappear({ serverId, pid }: GatewayEvents['upstream.ended']): void {
    const { owners } = this.#change(serverId, 0, -1);
    if (pid !== undefined) owners?.delete(pid);
  }

  #change(serverId: string, sessions: number, ownProcesses: number): Present {
    let present = this.#instances.get(serverId);
    if (present === undefined) {
      present = { sessions: 0, ownProcesses: 0, owners: undefined };
      this.#instances.set(serverId, present);
    }
    present.sessions += sessions;
    present.ownProcesses += ownProcesses;
    if (present.sessions === 0 && present.ownProcesses === 0) this.#instances.delete(serverId);
    return present;
  }
}

/** The counts of several templates together. */
export function sumOf(counts: Iterable<ClientCounts>): ClientCounts {
  const sum = { open: 0, opened: 0, ended: 0, lost: 0, moved: 0 };
  const processes = { running: 0, started: 0, lost: 0 };
  for (const { sessions, ownProcesses } of counts) {
    sum.open += sessions.open;
    sum.opened += sessions.opened;
    sum.ended += sessions.ended;
    sum.lost += sessions.lost;
    sum.moved += sessions.moved;
    processes.running += ownProcesses.running;
    processes.started += ownProcesses.started;
    processes.lost += ownProcesses.lost;
  }
  return { sessions: sum, ownProcesses: processes };
}

function countsOf({
  opened,
  ended,
  lost,
  moved,
  started,
  stopped,
  lostProcesses,
}: ClientTally): ClientCounts {
  return {
    sessions: { open: opened - ended, opened, ended, lost, moved },
    ownProcesses: { running: started - stopped, started, lost: lostProcesses },
  };
}

/** Over HTTP, a client's own conversation is a session of the backend. */
function isProcess({ transport }: { readonly transport: TransportKind }): boolean {
  return TRANSPORT_TRAITS[transport].hasProcesses;
}

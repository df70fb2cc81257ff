// Counts from the event stream what MCP clients have open, and how it ended: a subscriber like metrics.ts. Nothing is looked up
// or stored.

import type { Observable, Subscription } from 'rxjs';
import type { GatewayEvent, GatewayEvents } from '../domain/events.ts';
import { TRANSPORT_TRAITS, type TransportKind } from '../domain/instance.ts';

/** A process that runs for a single client. */
interface OwnProcess {
  readonly pid: number;
  readonly principal: string;
}

/** What clients have open at one instance now. */
export interface InstanceClients {
  /** Sessions that are bound to it, parked ones included. */
  readonly sessions: number;
  /** Processes that run for single clients, with or without a session. */
  readonly ownProcesses: number;
  /** Those of them whose process id is known, oldest first. */
  readonly processes: readonly OwnProcess[];
}

/** Since the gateway started; `open` and `running` are present numbers. */
export interface ClientCounts {
  /** `ended` includes `lost`: open = opened - ended. */
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

interface ClientTally {
  readonly sessions: { -readonly [Count in keyof ClientCounts['sessions']]: number };
  readonly ownProcesses: { -readonly [Count in keyof ClientCounts['ownProcesses']]: number };
}

interface Present {
  sessions: number;
  ownProcesses: number;
  /** The owner of each process, by its id. Made with the first one. */
  owners: Map<number, string> | undefined;
}

const NO_CLIENTS: InstanceClients = { sessions: 0, ownProcesses: 0, processes: [] };

export class ClientMetrics {
  readonly #templates = new Map<string, ClientTally>();
  /** Instances where anything is open, by server id. */
  readonly #instances = new Map<string, Present>();
  readonly #subscription: Subscription;

  constructor(events$: Observable<GatewayEvent>) {
    this.#subscription = events$.subscribe((event) => this.#count(event));
  }

  /** The number of instances with anything open; for specs that check for leaks. */
  get size(): number {
    return this.#instances.size;
  }

  /** By template, of those that ever had a session or a process of a client. */
  counts(): ReadonlyMap<string, ClientCounts> {
    return new Map([...this.#templates].map(([template, tally]) => [template, sumOf([tally])]));
  }

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
        add(this.#tallyOf(event.template).sessions, { open: 1, opened: 1 });
        this.#change(event.serverId, 1, 0);
        break;
      case 'session.moved':
        add(this.#tallyOf(event.template).sessions, { moved: 1 });
        this.#change(event.fromServerId, -1, 0);
        this.#change(event.serverId, 1, 0);
        break;
      case 'session.ended':
        add(this.#tallyOf(event.template).sessions, { open: -1, ended: 1, lost: event.isLost ? 1 : 0 });
        this.#change(event.serverId, -1, 0);
        break;
      case 'upstream.opened':
        if (!isProcess(event)) break;
        add(this.#tallyOf(event.template).ownProcesses, { running: 1, started: 1 });
        this.#processOpened(event);
        break;
      case 'upstream.ended':
        if (!isProcess(event)) break;
        add(this.#tallyOf(event.template).ownProcesses, { running: -1, lost: event.isLost ? 1 : 0 });
        this.#processEnded(event);
        break;
    }
  }

  #tallyOf(template: string): ClientTally {
    const known = this.#templates.get(template);
    if (known !== undefined) return known;
    const tally = sumOf([]);
    this.#templates.set(template, tally);
    return tally;
  }

  #processOpened({ serverId, pid, principal }: GatewayEvents['upstream.opened']): void {
    const present = this.#change(serverId, 0, 1);
    if (pid === undefined) return;
    present.owners ??= new Map();
    present.owners.set(pid, principal);
  }

  #processEnded({ serverId, pid }: GatewayEvents['upstream.ended']): void {
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

/** The counts of several templates together; a new object. */
export function sumOf(counts: Iterable<ClientCounts>): ClientTally {
  const sum: ClientTally = {
    sessions: { open: 0, opened: 0, ended: 0, lost: 0, moved: 0 },
    ownProcesses: { running: 0, started: 0, lost: 0 },
  };
  for (const { sessions, ownProcesses } of counts) {
    add(sum.sessions, sessions);
    add(sum.ownProcesses, ownProcesses);
  }
  return sum;
}

function add<C extends string>(
  counts: { [Count in C]: number },
  more: { readonly [Count in C]?: number },
): void {
  for (const count in more) counts[count] += more[count] ?? 0;
}

/** Over HTTP, a client's own conversation is a session of the backend. */
function isProcess({ transport }: { readonly transport: TransportKind }): boolean {
  return TRANSPORT_TRAITS[transport].hasProcesses;
}

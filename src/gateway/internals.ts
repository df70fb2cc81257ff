// The parts of a gateway that its server uses besides the public API (gateway.ts): those that other nodes, the HTTP routes and
// the metrics need.

import type { KeeperCounts } from '../actors/sessions/session-keeper.ts';
import type { InstanceHost } from '../cluster/channel/instances/instance-host.ts';
import type { TrafficCounts } from '../counts/traffic-counts.ts';
import type { ByteBudget } from '../domain/memory/held-bytes.ts';
import type { ProgramHost } from '../domain/nodes/nodes.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';
import type { DefinitionRegistry } from '../registry/kinds/definition-registry.ts';
import type { ToolApprovals } from '../registry/pinned/tool-approvals.ts';
import type { GatewayDeps } from './compose.ts';
import type { EventBus } from './event-bus.ts';
import type { AccountsAtBackends } from './instances/accounts-at-backends.ts';
import type { Readiness } from './readiness.ts';
import type { Requests } from './requests.ts';

/** The parts of one gateway, as its server gets them. */
export class GatewayInternals {
  /** Counts the bytes of requests of callers, and of other messages that wait for backends, by caller. */
  readonly requestBytes: ByteBudget;
  readonly clock: Clock;
  /** Runs the tasks of requests that would take a long turn of the event loop. */
  readonly scheduler: TaskScheduler;
  /** The instances of this node, for calls that other nodes run. */
  readonly host: InstanceHost;
  /** The programs of this node that other nodes may run; undefined unless nodes decide together where they run. */
  readonly leasedPrograms: ProgramHost | undefined;
  /** Accounts at backends that want OAuth; undefined where there are none. */
  readonly backendAccounts: AccountsAtBackends | undefined;
  /** Drains the gateway, and announces its stop. */
  readonly readiness: Readiness;
  /** The stored definitions of templates. */
  readonly definitions: DefinitionRegistry;
  /** The approved tools of pinned templates. */
  readonly approvals: ToolApprovals;
  /** Requests to instances, for routes that gather lists. */
  readonly requests: Requests;
  /** Counts by template and by instance, for the metrics of Prometheus and the samples of the load. */
  readonly traffic: TrafficCounts;
  readonly #deps: GatewayDeps;
  readonly #events: EventBus;

  constructor(deps: GatewayDeps, events: EventBus, readiness: Readiness, requests: Requests) {
    this.#deps = deps;
    this.#events = events;
    this.readiness = readiness;
    this.requests = requests;
    this.requestBytes = deps.requestBytes;
    this.clock = deps.plainClock;
    this.scheduler = deps.scheduler;
    this.host = deps.host;
    this.leasedPrograms = deps.leasedPrograms;
    this.backendAccounts = deps.backendAccounts;
    this.definitions = deps.registry.definitions;
    this.approvals = deps.approvals;
    this.traffic = deps.traffic;
  }

  /** Starts the stored instances; accepts calls when `more` is done. Called once, by createGateway or instead of it. */
  async load(more?: () => Promise<void>): Promise<void> {
    const { tracing, registry, keeper, fleet, leasedPrograms, clock } = this.#deps;
    await tracing.ready();
    await registry.load();
    await more?.();
    if (this.readiness.phase !== 'starting') return; // `close` was called meanwhile
    keeper?.begin();
    this.readiness.run([...fleet.ownRefs(), ...(leasedPrograms?.opening() ?? [])]);
    this.#events.emit({ type: 'gateway.started', atMs: clock.wall() });
  }

  /** Applies the changes of other nodes in the store. */
  reloadRegistry(): Promise<void> {
    return this.#deps.registry.reload();
  }

  readonly beginLife = (life: string): Promise<void> => this.#deps.clientSide.sessions.beginLife(life);
  readonly hasSession = (id: string): boolean => this.#deps.clientSide.sessions.findAny(id) !== undefined;
  /** Programs that run here, without dedicated processes, and calls under way. */
  readonly activity = () => this.#deps.fleet.activity;

  /** Counts of the sessions that outlive the gateway, since its start; undefined where none do. */
  get keptSessions(): KeeperCounts | undefined {
    return this.#deps.keeper?.counts;
  }
}

// The parts of a gateway that its server uses besides the public API (gateway.ts): those that other nodes, the HTTP routes and
// the metrics need.

import type { KeeperCounts } from '../actors/sessions/session-keeper.ts';
import type { Registry } from '../registry/registry.ts';
import type { GatewayDeps } from './compose.ts';
import type { EventBus } from './event-bus.ts';
import type { PromisedAnswers } from './promised-answers.ts';
import type { Readiness } from './readiness.ts';

/** The parts of one gateway, as its server gets them. */
export interface GatewayInternals {
  /** Counts the bytes of requests of callers, and of other messages that wait for backends, by caller. */
  readonly requestBytes: GatewayDeps['memory']['requestBytes'];
  readonly clock: GatewayDeps['clock'];
  /** Runs the tasks of requests that would take a long turn of the event loop. */
  readonly scheduler: GatewayDeps['scheduler'];
  /** The instances of this node, for calls that other nodes run. */
  readonly host: GatewayDeps['host'];
  /** The programs of this node that other nodes may run; undefined unless nodes decide together where they run. */
  readonly leasedPrograms: Registry['leasedPrograms'];
  /** Accounts at backends that want OAuth; undefined where there are none. */
  readonly backendAccounts: GatewayDeps['backendAccounts'];
  /** Drains the gateway, and announces its stop. */
  readonly readiness: Readiness;
  /** The stored definitions of templates. */
  readonly definitions: Registry['definitions'];
  /** The approved tools of pinned templates. */
  readonly approvals: Registry['approvals'];
  /** Makes requests to instances, for routes that gather lists. */
  readonly promisedAnswers: PromisedAnswers;
  /** Counts by template and by instance, for the metrics of Prometheus and the samples of the load. */
  readonly traffic: GatewayDeps['traffic'];
  /** Counts of the sessions that outlive the gateway, since its start; undefined where none do. */
  readonly keptSessions: KeeperCounts | undefined;
  /** Starts the stored instances; accepts calls when `more` is done. Called once, by createGateway or instead of it. */
  load(more?: () => Promise<void>): Promise<void>;
  /** Applies the changes of other nodes in the store. */
  reloadRegistry(): Promise<void>;
  readonly beginLife: (life: string) => Promise<void>;
  readonly hasSession: (id: string) => boolean;
  /** Programs that run here, without dedicated processes, and calls under way. */
  readonly activity: () => GatewayDeps['fleet']['activity'];
}

/** The internals of the gateway that has these parts. */
export function internalsOf(
  deps: GatewayDeps,
  events: EventBus,
  readiness: Readiness,
  promisedAnswers: PromisedAnswers,
): GatewayInternals {
  const { clientSide, fleet, keeper, registry } = deps;
  return {
    ...deps,
    requestBytes: deps.memory.requestBytes,
    definitions: registry.definitions,
    approvals: registry.approvals,
    leasedPrograms: registry.leasedPrograms,
    readiness,
    promisedAnswers,
    get keptSessions() {
      return keeper?.counts;
    },
    load: (more) => load(deps, events, readiness, more),
    reloadRegistry: () => registry.reload(),
    beginLife: (life) => clientSide.sessions.beginLife(life),
    hasSession: (id) => clientSide.sessions.findAny(id) !== undefined,
    activity: () => fleet.activity,
  };
}

async function load(
  { tracing, registry, keeper, fleet, clock }: GatewayDeps,
  events: EventBus,
  readiness: Readiness,
  more?: () => Promise<void>,
): Promise<void> {
  await tracing.ready();
  await registry.load();
  await more?.();
  if (readiness.phase !== 'starting') return; // `close` was called meanwhile
  keeper?.begin();
  readiness.run([...fleet.ownRefs(), ...(registry.leasedPrograms?.opening() ?? [])]);
  events.emit({ type: 'gateway.started', atMs: clock.wall() });
}

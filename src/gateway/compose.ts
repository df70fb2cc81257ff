// Composition root: creates and connects the parts of a gateway for its facade (gateway.ts).

import { map } from 'rxjs';
import { Dispatcher } from '../actors/calls/dispatcher.ts';
import { RetryBudget } from '../actors/calls/retry-budget.ts';
import { Fleet } from '../actors/fleet.ts';
import { SessionKeeper } from '../actors/sessions/session-keeper.ts';
import { DEFAULT_POLICY } from '../balancing/policy.ts';
import { availableMemoryBytes } from '../config/memory.ts';
import { TrafficCounts } from '../counts/traffic-counts.ts';
import { droppingErrors } from '../domain/errors/dropping-errors.ts';
import type { ActorInspection, ActorInspector } from '../domain/events/actor-inspection.ts';
import type { GatewayEvent } from '../domain/events/events.ts';
import { definedFields } from '../domain/json/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { memoryBounds } from '../domain/memory/held-bytes.ts';
import { newLife } from '../domain/nodes/life.ts';
import { nodeOf } from '../domain/nodes/nodes.ts';
import { DENIED_NETWORKS } from '../domain/registration/endpoint.ts';
import { type Clock, spreadClock } from '../domain/time/clock.ts';
import { TaskScheduler } from '../domain/time/task-scheduler.ts';
import { addressesIn } from '../net/network-guard.ts';
import { SystemLookups } from '../net/system-lookups.ts';
import type { Store } from '../persistence/store.ts';
import { databaseStatus } from '../registry/database-status.ts';
import { Registry } from '../registry/registry.ts';
import { ActiveDefinitions } from '../templates/active-definitions.ts';
import { protectedDatabase } from '../templates/command-exposure.ts';
import { Tracing } from '../tracing/tracing.ts';
import type { InProcessHandler } from '../transports/open-options.ts';
import { LeaseReaper } from '../transports/stdio/lease-reaper.ts';
import { Reaper } from '../transports/stdio/reaper.ts';
import { ClientSide } from './endpoint/client-side.ts';
import { useOnceIn } from './endpoint/used-confirmations.ts';
import type { EventBus } from './event-bus.ts';
import type { GatewayOptions } from './gateway-types.ts';
import { AccountsAtBackends } from './instances/accounts-at-backends.ts';
import { ConnectionTests } from './instances/connection-tests.ts';
import { HostedInstances } from './instances/hosted-instances.ts';
import { createOpenTransport } from './instances/open-transport.ts';
import { memoryBudgets } from './memory-budgets.ts';
import type { Readiness } from './readiness.ts';
import { Sync } from './sync.ts';

type ComposeOptions = GatewayOptions & { readonly clock: Clock };

export type GatewayDeps = ReturnType<typeof composeGateway>;

/** Connects the parts of a gateway, and starts nothing. The caller closes `events`. */
export function composeGateway(
  store: Store,
  options: ComposeOptions,
  events: EventBus,
  readiness: Readiness,
) {
  const base = composeBase(store, options, events);
  const instances = composeInstances(base);
  const clients = composeClients(base, instances, readiness);
  const { clock, definitions, memory } = base;
  const { fleet, registry, openTransport } = instances;
  const hasTemplate = (template: string): boolean => fleet.templates.has(template);
  const hasView = (view: string): boolean => registry.views.find(view) !== undefined;
  return {
    ...base,
    ...instances,
    ...clients,
    traffic: new TrafficCounts(events.events$, { clock, hasTemplate, hasView }),
    sync: new Sync({ registry, definitions, clock, memoryBytes: options.memoryBytes, ...options.discovery }),
    tests: new ConnectionTests({ openTransport, registry, clock }),
    host: new HostedInstances({ clock, fleet, requestBytes: memory.requestBytes }),
    readDatabase: databaseStatus(store, clock.now),
  };
}

const SESSION_DEFAULTS = { max: LIMITS.sessions, idleMs: LIMITS.sessionIdleMs };

type Base = ReturnType<typeof composeBase>;

/** The parts that most others use. */
function composeBase(store: Store, options: ComposeOptions, events: EventBus) {
  const { clock: plainClock, deniedNetworks = DENIED_NETWORKS, node = {} } = options;
  const scheduler = new TaskScheduler();
  const clock = spreadClock(scheduler, plainClock);
  const bounds = memoryBounds(options.memoryBytes ?? availableMemoryBytes());
  return {
    store,
    options,
    events,
    scheduler,
    plainClock,
    /** `plainClock`, except that alarms due at the same time ring over several turns. */
    clock,
    memory: memoryBudgets(bounds, { clock, scheduler }, options.requestBounds),
    life: node.life ?? newLife(),
    sessions: { ...SESSION_DEFAULTS, ...definedFields(options.sessions ?? {}) },
    /** Undefined for a gateway that alone uses its store. */
    ownNode: node.id && nodeOf(node.id, node.worker),
    emit: (event: GatewayEvent) => events.emit(event),
    policy: { ...DEFAULT_POLICY, ...options.policy },
    definitions: new ActiveDefinitions(options.definitions),
    isDenied: addressesIn(deniedNetworks),
  };
}

type Instances = ReturnType<typeof composeInstances>;

/** The instances: their actors, what opens them, and their records in the store. */
function composeInstances(base: Base) {
  const { store, options, clock, plainClock, scheduler, emit, memory, isDenied, definitions, policy } = base;
  const { random = Math.random, inspect, storeChanges$, others = {}, node } = options;
  const programs = programRules(base);
  const handlers = new Map<string, InProcessHandler>();
  const systemLookups = new SystemLookups({ clock: plainClock });
  const backendAccounts = composeBackendAccounts(base, systemLookups, () => fleet);
  const openTransport = createOpenTransport({
    clock: plainClock,
    scheduler,
    memory,
    programs,
    network: { isDenied, lookup: systemLookups.lookup },
    handlers,
    definitions,
    backendAccounts,
    onRefused: (serverId) => registry.leasedPrograms?.refused(serverId),
  });
  const { openElsewhere } = others;
  const fleet: Fleet = new Fleet({
    clock,
    random,
    emit,
    scheduler,
    openTransport,
    trustOf: (template) => registry.approvals.trustOf(template),
    inspect: inspect && safeInspector(inspect),
    openElsewhere:
      openElsewhere &&
      ((definition) => openElsewhere(definition, memory.heldAnswers.of(definition.serverId))),
    dedicatedBounds: options.sessions,
    toolLists: memory.toolLists,
  });
  const usable = options.backendAccounts?.hasUsers === false ? 'shared' : 'all';
  const registry: Registry = new Registry({
    store,
    storeChanges$,
    fleet,
    clock,
    scheduler,
    emit,
    policy,
    handlers,
    definitions,
    isDenied,
    programs,
    node,
    accounts: options.backendAccounts === undefined ? 'none' : usable,
  });
  return { reaper: programs.reaper, backendAccounts, openTransport, fleet, registry };
}

function programRules({ store, options }: Base) {
  const { programs: { passEnv, user, protectedPaths = [], reaperPipe } = {}, others = {} } = options;
  const ownPaths = store.file === undefined ? [] : protectedDatabase(store.file);
  const reaper = new Reaper({ pipe: reaperPipe });
  const leaseReaper = others.leasesPrograms === true ? new LeaseReaper(reaper) : undefined;
  return { passEnv, user, protectedPaths: [...ownPaths, ...protectedPaths], reaper, leaseReaper };
}

/** The accounts at backends that want OAuth, if there can be any. */
function composeBackendAccounts(
  { store, options, plainClock: clock, scheduler, isDenied }: Base,
  systemLookups: SystemLookups,
  fleet: () => Fleet,
): AccountsAtBackends | undefined {
  const { backendAccounts } = options;
  if (backendAccounts === undefined) return undefined;
  const { oauth, accounts } = store;
  return new AccountsAtBackends({
    ...backendAccounts,
    ...{ store: oauth, accounts, clock, scheduler, isDenied, systemLookups, fleet },
  });
}

/** The calls to instances, and the clients that make them. */
function composeClients(base: Base, instances: Instances, readiness: Readiness) {
  const { store, options, events, clock, scheduler, emit, memory, life, sessions } = base;
  const { fleet, registry, backendAccounts } = instances;
  const { others = {} } = options;
  const tracing = new Tracing();
  const budget = new RetryBudget(clock.now);
  const isAccepting = () => readiness.phase === 'running';
  const { aggregate, callLimiter, changedCallers$, maxCallMs, stateKeys, onFault, random } = options;
  const dispatcher = new Dispatcher({
    clock,
    fleet,
    scheduler,
    emit,
    budget,
    isAccepting,
    maxCallMs,
    trustOf: registry.approvals.trustOf,
    trace: () => tracing.spans?.embeddedTrace(),
  });
  const keeper = composeKeeper(base);
  const clientSide = new ClientSide({
    aggregate,
    callLimiter,
    changedCallers$,
    maxCallMs,
    stateKeys,
    onFault,
    random,
    clock,
    scheduler,
    fleet,
    emit,
    budget,
    isAccepting,
    dispatcher,
    keeper,
    life,
    sessions,
    registry,
    userNotices$: backendAccounts?.notices$,
    isDraining: () => readiness.isDraining,
    isCutOff: others.isCutOff,
    untilLifeKnown: others.untilLifeKnown,
    recovered$: events.on('instance.healthy').pipe(map(({ template }) => template)),
    memory,
    lists: store.kind === 'memory' ? undefined : store.lists,
    useOnce: useOnceIn(store, clock),
  });
  events.on('gateway.draining').subscribe(() => clientSide.sessions.drain());
  events.on('gateway.resumed').subscribe(() => clientSide.sessions.endDrain());
  events.on('gateway.closing').subscribe(() => backendAccounts?.close());
  return { tracing, dispatcher, keeper, clientSide };
}

/** Stores the sessions of clients; undefined where they end with the gateway. */
function composeKeeper({ store, options, ownNode, clock, life, sessions }: Base): SessionKeeper | undefined {
  const { max: maxSessions, idleMs, recover = false } = sessions;
  if (!recover || ownNode === undefined || store.kind === 'memory') return undefined;
  const { others: holders = {} } = options;
  return new SessionKeeper({
    store: store.sessions,
    node: ownNode,
    life,
    clock,
    maxSessions,
    idleMs,
    holders,
  });
}

/** The inspector without its errors, which would stop the inspected actor. */
function safeInspector(inspect: ActorInspector): (event: ActorInspection) => void {
  return droppingErrors((event: ActorInspection) =>
    typeof inspect === 'function' ? inspect(event) : inspect.next?.(event),
  );
}

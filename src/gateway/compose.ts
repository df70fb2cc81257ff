// Composition root: creates and connects the parts of a gateway for its facade (gateway.ts).

import { map } from 'rxjs';
import { Dispatcher } from '../actors/calls/dispatcher.ts';
import { RetryBudget } from '../actors/calls/retries.ts';
import { Fleet } from '../actors/fleet.ts';
import { SessionKeeper } from '../actors/sessions/session-keeper.ts';
import { DEFAULT_POLICY } from '../balancing/policy.ts';
import { availableMemoryBytes } from '../config/memory.ts';
import { TrafficCounts } from '../counts/traffic-counts.ts';
import type { ActorInspection, ActorInspector } from '../domain/actor-inspection.ts';
import { droppingErrors } from '../domain/errors/dropping-errors.ts';
import type { GatewayEvent } from '../domain/events.ts';
import { DENIED_NETWORKS } from '../domain/instances/endpoint.ts';
import { ListReader } from '../domain/mcp/list-reader.ts';
import { ByteBudget, HeldBytes, memoryBounds } from '../domain/memory/held-bytes.ts';
import { newLife } from '../domain/nodes/life.ts';
import { nodeOf } from '../domain/nodes/nodes.ts';
import { TaskScheduler } from '../domain/tasks/task-scheduler.ts';
import { spreadClock, systemClock } from '../domain/time/clock.ts';
import { addressesIn } from '../net/network-guard.ts';
import { SystemLookups } from '../net/system-lookups.ts';
import type { Store } from '../persistence/store.ts';
import { databaseStatus } from '../registry/database-status.ts';
import { FleetPrograms } from '../registry/fleet-programs.ts';
import { Registry } from '../registry/registry.ts';
import { ToolApprovals } from '../registry/tool-approvals.ts';
import { protectedDatabase } from '../templates/command-exposure.ts';
import { DefinitionsInForce } from '../templates/definitions-in-force.ts';
import { Tracing } from '../tracing/tracing.ts';
import type { InProcessHandler } from '../transports/open-options.ts';
import { LeaseReaper } from '../transports/stdio/lease-reaper.ts';
import { Reaper } from '../transports/stdio/reaper.ts';
import { LazyVault } from '../vault/lazy-vault.ts';
import { ClientSide, type ClientSideDeps } from './endpoint/client-side.ts';
import { useOnceIn } from './endpoint/used-confirmations.ts';
import type { EventBus } from './event-bus.ts';
import type { GatewayOptions } from './gateway-types.ts';
import { AccountsAtBackends } from './instances/accounts-at-backends.ts';
import { ConnectionTests } from './instances/connection-tests.ts';
import { HostedInstances } from './instances/hosted-instances.ts';
import { type OpenTransportOptions, openTransportOf } from './instances/open-transport.ts';
import type { Readiness } from './readiness.ts';
import { Sync } from './sync.ts';

export type GatewayDeps = ReturnType<typeof composeGateway>;

/** Connects the parts of a gateway, and starts nothing. The caller closes `events`. */
export function composeGateway(
  store: Store,
  options: GatewayOptions,
  events: EventBus,
  readiness: Readiness,
) {
  const base = baseOf(store, options, events);
  const { clock, scheduler, policy, definitions, requestBytes, listReader } = base;

  // Instances: how they are opened, which tools of theirs are approved, their actors, and what is stored of them.
  const { reaper, leaseReaper } = reapersOf(base);
  const { vault, backendAccounts } = backendAccountsOf(base, () => fleet);
  const openTransport = openTransportOf({
    ...openingOf(base),
    reaper,
    leaseReaper,
    vault,
    backendAccounts,
    onRefused: (serverId) => fleetPrograms?.refused(serverId),
  });
  const approvals = approvalsOf(base, () => fleet);
  const fleet: Fleet = fleetOf(base, openTransport, approvals);
  const fleetPrograms = fleetProgramsOf(base, fleet, leaseReaper);
  const registry = registryOf(base, { fleet, fleetPrograms, approvals });

  // Calls to them, and their clients.
  const tracing = new Tracing();
  const calls = callsOf(base, { fleet, approvals, tracing, readiness });
  const dispatcher = new Dispatcher({ ...calls, maxCallMs: options.maxCallMs });
  const keeper = keeperOf(base);
  const clientSide = clientSideOf(base, {
    ...calls,
    dispatcher,
    keeper,
    registry,
    approvals,
    backendAccounts,
    readiness,
  });

  return {
    clock,
    scheduler,
    policy,
    definitions,
    requestBytes,
    listReader,
    reaper,
    backendAccounts,
    approvals,
    fleet,
    fleetPrograms,
    registry,
    tracing,
    dispatcher,
    keeper,
    clientSide,
    traffic: trafficCountsOf(base, fleet, registry),
    sync: new Sync({ registry, definitions, ...options.discovery }),
    tests: new ConnectionTests({ openTransport, registry, ...clock }),
    host: new HostedInstances({ ...clock, fleet, requestBytes }),
    readDatabase: databaseStatus(store, clock.now),
  };
}

type Base = ReturnType<typeof baseOf>;

/** What most parts use. */
function baseOf(store: Store, options: GatewayOptions, events: EventBus) {
  const { clock: ownClock = systemClock, deniedNetworks = DENIED_NETWORKS, node = {}, others = {} } = options;
  const { programs = {} } = options;
  const scheduler = new TaskScheduler();
  const clock = spreadClock(scheduler, ownClock);
  const bounds = memoryBounds(options.memoryBytes ?? availableMemoryBytes());
  const heldAnswers = new HeldBytes(bounds.backendAnswers, clock.now);
  const own = store.file === undefined ? [] : protectedDatabase(store.file);
  return {
    store,
    options,
    events,
    node,
    others,
    programs,
    scheduler,
    ownClock,
    clock,
    bounds,
    life: node.life ?? newLife(),
    /** Undefined for a gateway that alone uses its store. */
    ownNode: node.id && nodeOf(node.id, node.worker),
    emit: (event: GatewayEvent) => events.emit(event),
    policy: { ...DEFAULT_POLICY, ...options.policy },
    definitions: new DefinitionsInForce(options.definitions),
    handlers: new Map<string, InProcessHandler>(),
    isDenied: addressesIn(deniedNetworks),
    systemLookups: new SystemLookups(ownClock),
    protectedPaths: [...own, ...(programs.protectedPaths ?? [])],
    user: programs.user,
    heldAnswers,
    listReader: new ListReader({ bounds: bounds.lists, answers: heldAnswers, scheduler }),
    requestBytes: new ByteBudget(options.requestBounds ?? bounds.requests),
  };
}

function reapersOf({ programs, others }: Base) {
  const reaper = new Reaper({ pipe: programs.reaperPipe });
  return { reaper, leaseReaper: others.leasePrograms ? new LeaseReaper(reaper) : undefined };
}

/** The accounts at backends that want OAuth, if there can be any. */
function backendAccountsOf(
  { store, options, ownClock, isDenied, systemLookups }: Base,
  fleet: () => Fleet,
): { readonly vault?: LazyVault; readonly backendAccounts?: AccountsAtBackends } {
  const { backendAccounts } = options;
  if (backendAccounts === undefined) return {};
  const { address, roles } = backendAccounts;
  const vault = new LazyVault({
    ...ownClock,
    ...backendAccounts,
    store: store.oauth,
    isDenied,
    systemLookups,
  });
  const accounts = new AccountsAtBackends({
    vault,
    clock: ownClock,
    address,
    fleet,
    roles,
    store: store.oauth,
    accounts: store.accounts,
  });
  return { vault, backendAccounts: accounts };
}

function openingOf(base: Base): OpenTransportOptions {
  const { programs, ownClock, isDenied, handlers, scheduler, definitions, heldAnswers } = base;
  const { protectedPaths, user } = base;
  return {
    clock: ownClock,
    isDenied,
    handlers,
    scheduler,
    protectedPaths,
    user,
    definitions,
    heldAnswers,
    lookup: base.systemLookups.lookup,
    passEnv: programs.passEnv,
    waitingBytes: base.requestBytes,
  };
}

function approvalsOf({ store, scheduler, emit, ownClock }: Base, fleet: () => Fleet): ToolApprovals {
  return new ToolApprovals({
    store: store.approvals,
    scheduler,
    emit,
    clock: ownClock,
    hintsOf: (template) => (fleet().has(template) ? (fleet().group(template).policy.annotate ?? {}) : {}),
    onChanged: (template) => fleet().listChanged$.next({ template, list: 'tools' }),
  });
}

function fleetOf(
  { options, others, clock, emit, scheduler, heldAnswers, bounds }: Base,
  openTransport: ReturnType<typeof openTransportOf>,
  { trustOf }: ToolApprovals,
): Fleet {
  const { random = Math.random, inspect } = options;
  const { openElsewhere } = others;
  return new Fleet({
    ...clock,
    random,
    emit,
    scheduler,
    openTransport,
    trustOf,
    inspect: inspect && safeInspector(inspect),
    openElsewhere:
      openElsewhere && ((definition) => openElsewhere(definition, heldAnswers.of(definition.serverId))),
    dedicatedBounds: options.sessions,
    toolLists: new ByteBudget(bounds.declarations),
  });
}

/** The programs that any node may run, if there are other nodes. */
function fleetProgramsOf(
  { ownNode, others }: Base,
  fleet: Fleet,
  reaper: LeaseReaper | undefined,
): FleetPrograms | undefined {
  const programs = reaper && new FleetPrograms({ fleet, reaper, nodeId: ownNode });
  if (programs) others.leasePrograms?.(programs);
  return programs;
}

function registryOf(
  base: Base,
  parts: {
    readonly fleet: Fleet;
    readonly fleetPrograms: FleetPrograms | undefined;
    readonly approvals: ToolApprovals;
  },
): Registry {
  const { storeChanges$, backendAccounts } = base.options;
  const { id: nodeId, worker, isAnyDefault, hasEphemeralNodes } = base.node;
  const usable = backendAccounts?.hasUsers === false ? 'shared' : 'all';
  return new Registry({
    ...parts,
    store: base.store,
    scheduler: base.scheduler,
    clock: base.clock,
    emit: base.emit,
    policy: base.policy,
    handlers: base.handlers,
    definitions: base.definitions,
    isDenied: base.isDenied,
    protectedPaths: base.protectedPaths,
    user: base.user,
    storeChanges$,
    nodeId,
    worker,
    isAnyDefault,
    hasEphemeralNodes,
    accounts: backendAccounts === undefined ? 'none' : usable,
  });
}

/** What every call uses. */
function callsOf(
  { clock, scheduler, emit }: Base,
  {
    fleet,
    approvals,
    tracing,
    readiness,
  }: {
    readonly fleet: Fleet;
    readonly approvals: ToolApprovals;
    readonly tracing: Tracing;
    readonly readiness: Readiness;
  },
) {
  return {
    ...clock,
    fleet,
    scheduler,
    emit,
    trustOf: approvals.trustOf,
    budget: new RetryBudget(clock.now),
    isAccepting: () => readiness.phase === 'running',
    trace: () => tracing.spans?.embeddedTrace(),
  };
}

/** Stores the sessions of clients; undefined where they end with the gateway. */
function keeperOf({ store, options, others, ownNode, clock, life }: Base): SessionKeeper | undefined {
  const { max: maxSessions, idleMs, recover = false } = options.sessions ?? {};
  if (!recover || ownNode === undefined || store.kind === 'memory') return undefined;
  return new SessionKeeper({
    store: store.sessions,
    node: ownNode,
    life,
    clock,
    maxSessions,
    idleMs,
    holders: others,
  });
}

/** The endpoint for MCP clients. */
function clientSideOf(
  { store, options, others, events, clock, life, bounds, listReader }: Base,
  {
    registry,
    backendAccounts,
    readiness,
    ...parts
  }: ReturnType<typeof callsOf> &
    Pick<ClientSideDeps, 'dispatcher' | 'keeper' | 'approvals'> & {
      readonly registry: Registry;
      readonly backendAccounts: AccountsAtBackends | undefined;
      readonly readiness: Readiness;
    },
): ClientSide {
  const clientSide = new ClientSide({
    ...options,
    ...parts,
    life,
    views: registry.views,
    userNotices$: backendAccounts?.notices$,
    isDraining: () => readiness.isDraining,
    isCutOff: others.isCutOff,
    certain: others.certain,
    recovered$: events.on('instance.healthy').pipe(map(({ template }) => template)),
    // Buffered events mostly share their bytes with unread answers, and so get half of that bound.
    bufferedBytes: bounds.unreadAnswers.totalBytes / 2,
    declarations: new ByteBudget(bounds.declarations),
    heldQuestions: new HeldBytes(bounds.questions, clock.now),
    listReader,
    lists: store.kind === 'memory' ? undefined : store.lists,
    useOnce: useOnceIn(store.oauth, clock),
  });
  events.on('gateway.draining').subscribe(() => clientSide.sessions.drain());
  events.on('gateway.resumed').subscribe(() => clientSide.sessions.resume());
  events.on('gateway.closing').subscribe(() => backendAccounts?.close());
  return clientSide;
}

function trafficCountsOf({ events, clock }: Base, fleet: Fleet, { views }: Registry): TrafficCounts {
  const hasTemplate = (template: string): boolean => fleet.has(template);
  const hasView = (view: string): boolean => views.find(view) !== undefined;
  return new TrafficCounts(events.events$, hasTemplate, clock, hasView);
}

/** Without errors of the inspector: they would stop the inspected actor. */
function safeInspector(inspect: ActorInspector): (event: ActorInspection) => void {
  return droppingErrors((event: ActorInspection) =>
    typeof inspect === 'function' ? inspect(event) : inspect.next?.(event),
  );
}

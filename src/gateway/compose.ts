// Composition root: creates, connects and closes the parts of a gateway for its facade (gateway.ts).

import { map } from 'rxjs';
import type { CallDeps } from '../actors/calls/call-route.ts';
import { Dispatcher } from '../actors/calls/dispatcher.ts';
import { RetryBudget } from '../actors/calls/retry-budget.ts';
import { Fleet } from '../actors/fleet/fleet.ts';
import { ClientSessions } from '../actors/sessions/client-sessions.ts';
import { SessionKeeper } from '../actors/sessions/rows/session-keeper.ts';
import type { SessionDeps } from '../actors/sessions/session-deps.ts';
import { DEFAULT_POLICY, type TemplatePolicy } from '../balancing/policy.ts';
import { availableMemoryBytes } from '../config/memory.ts';
import { TrafficCounts } from '../counts/traffic-counts.ts';
import { droppingErrors } from '../domain/errors/dropping-errors.ts';
import type { ActorInspection, ActorInspector } from '../domain/events/actor-inspection.ts';
import type { GatewayEvent } from '../domain/events/events.ts';
import type { InstanceDefinition } from '../domain/instances/instance.ts';
import { LIMITS } from '../domain/limits.ts';
import { memoryBounds } from '../domain/memory/held-bytes.ts';
import { newLife } from '../domain/nodes/life.ts';
import { nodeOf } from '../domain/nodes/nodes.ts';
import { DENIED_NETWORKS } from '../domain/registration/instance-endpoint.ts';
import { type Clock, settlesWithin, spreadClock } from '../domain/time/clock.ts';
import { TaskScheduler, type Timing } from '../domain/time/task-scheduler.ts';
import { type AddressCheck, addressesIn } from '../net/network-guard.ts';
import { SystemLookups } from '../net/system-lookups.ts';
import type { Store } from '../persistence/store.ts';
import { LeaseReaper } from '../programs/lease-reaper.ts';
import { Reaper } from '../programs/reaper.ts';
import { type DatabaseState, databaseStatus } from '../registry/database-status.ts';
import { Registry } from '../registry/registry.ts';
import { ActiveDefinitions } from '../templates/active-definitions.ts';
import { protectedDatabase } from '../templates/command-exposure.ts';
import { Tracing } from '../tracing/tracing.ts';
import type { InProcessHandler, Open } from '../transports/open-options.ts';
import { McpParts } from './endpoint/mcp-parts.ts';
import type { EventBus } from './event-bus.ts';
import type { GatewayOptions } from './gateway-types.ts';
import { AccountsAtBackends } from './instances/accounts-at-backends.ts';
import { ConnectionTests } from './instances/connection-tests.ts';
import { HostedInstances } from './instances/hosted-instances.ts';
import { createOpenTransport } from './instances/open-transport.ts';
import { type MemoryBudgets, memoryBudgets } from './memory-budgets.ts';
import type { Readiness } from './readiness.ts';
import { Sync } from './sync.ts';

type ComposeOptions = GatewayOptions & { readonly clock: Clock };

/** What most other parts are made with. `clock`: `plainClock`, except that alarms due at the same time ring over several turns. */
interface Base extends Timing {
  readonly store: Store;
  readonly options: ComposeOptions;
  readonly events: EventBus;
  readonly emit: (event: GatewayEvent) => void;
  readonly plainClock: Clock;
  readonly memory: MemoryBudgets;
  readonly policy: TemplatePolicy;
  readonly definitions: ActiveDefinitions;
  readonly isDenied: AddressCheck;
}

/** The instances: what opens them, their actors, and their records in the store. */
interface Instances {
  /** Ends programs that outlive their instances. */
  readonly reaper: Reaper;
  /** The accounts at backends that want OAuth. Undefined where there can be none. */
  readonly backendAccounts: AccountsAtBackends | undefined;
  readonly openTransport: (definition: InstanceDefinition) => Open;
  readonly fleet: Fleet;
  readonly registry: Registry;
}

/** The calls to instances, and the clients that make them. */
interface CallsAndClients {
  readonly tracing: Tracing;
  readonly dispatcher: Dispatcher;
  /** Writes the rows of the sessions of clients. Undefined where these end with the gateway. */
  readonly keeper: SessionKeeper | undefined;
  readonly sessions: ClientSessions;
  readonly mcp: McpParts;
}

/** The parts of one gateway that its facade (gateway.ts) and its server (internals.ts) use. */
export interface GatewayParts
  extends Pick<Base, 'clock' | 'scheduler' | 'memory' | 'policy' | 'definitions' | 'options'>,
    Instances,
    CallsAndClients {
  readonly traffic: TrafficCounts;
  readonly sync: Sync;
  readonly tests: ConnectionTests;
  /** The instances of this node, for calls that other nodes run. */
  readonly host: HostedInstances;
  readonly readDatabase: () => Promise<DatabaseState>;
}

/** Connects the parts of a gateway, and starts nothing. `closeParts` ends them. */
export function composeGateway(
  store: Store,
  options: ComposeOptions,
  events: EventBus,
  readiness: Readiness,
): GatewayParts {
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
    tests: new ConnectionTests(clock, openTransport, registry),
    host: new HostedInstances(clock, fleet, memory.requestBytes),
    readDatabase: databaseStatus(store, clock.now),
  };
}

/** Closes the parts of a gateway that takes no calls any more, and `events`; see Gateway.close. */
export async function closeParts(parts: GatewayParts, events: EventBus, graceMs: number): Promise<void> {
  const { fleet, registry, mcp, sync, tests, clock, reaper, backendAccounts } = parts;
  const synced = Promise.allSettled([sync.close(), mcp.endpoint.dismiss()]); // no new call begins
  events.emit({ type: 'gateway.closing', atMs: clock.wall(), calls: fleet.underWay, graceMs });
  backendAccounts?.close(); // calls that wait for an account go on
  // Running changes may finish, but a database that does not answer must not keep the children alive.
  await settlesWithin(registry.close(), Math.min(graceMs, LIMITS.backgroundMs), clock);
  const closed = Promise.allSettled([mcp.close(graceMs), fleet.close(graceMs), tests.close()]);
  const ends = [...(await closed), ...(await synced)];
  if (backendAccounts !== undefined)
    await settlesWithin(backendAccounts.stored(), LIMITS.backgroundMs, clock);
  reaper.close();
  fleet.listChanged$.complete(); // the endpoint has ended its streams of changes, over several turns
  events.close();
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

function composeBase(store: Store, options: ComposeOptions, events: EventBus): Base {
  const { clock: plainClock, deniedNetworks = DENIED_NETWORKS } = options;
  const scheduler = new TaskScheduler();
  const clock = spreadClock(scheduler, plainClock);
  const bounds = memoryBounds(options.memoryBytes ?? availableMemoryBytes());
  return {
    store,
    options,
    events,
    emit: (event) => events.emit(event),
    scheduler,
    plainClock,
    clock,
    memory: memoryBudgets(bounds, { clock, scheduler }, options.requestBounds),
    policy: { ...DEFAULT_POLICY, ...options.policy },
    definitions: new ActiveDefinitions(options.definitions),
    isDenied: addressesIn(deniedNetworks),
  };
}

function composeInstances(base: Base): Instances {
  const { store, options, clock, plainClock, scheduler, emit, memory, isDenied, definitions, policy } = base;
  const { random = Math.random, inspect, storeChanges$, others = {}, node } = options;
  const { systemLookups = new SystemLookups({ clock: plainClock }) } = options;
  const programs = programRules(base);
  const handlers = new Map<string, InProcessHandler>();
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

function composeClients(base: Base, instances: Instances, readiness: Readiness): CallsAndClients {
  const { store, options, events, clock, scheduler, emit, memory } = base;
  const { fleet, registry, backendAccounts } = instances;
  const { maxCallMs } = options;
  const tracing = new Tracing();
  const calls: CallDeps = {
    clock,
    scheduler,
    fleet,
    emit,
    trustOf: registry.approvals.trustOf,
    maxCallMs,
    budget: new RetryBudget(clock.now),
    isAccepting: () => readiness.phase === 'running',
    trace: () => tracing.spans?.embeddedTrace(),
  };
  const dispatcher = new Dispatcher(calls);
  const { keeper, sessions } = composeSessions(base, { ...calls, dispatcher }, readiness);
  const mcp = new McpParts({
    store,
    options,
    clock,
    scheduler,
    emit,
    memory,
    fleet,
    registry,
    dispatcher,
    sessions,
    userNotices$: backendAccounts?.notices$,
    recovered$: events.on('instance.healthy').pipe(map(({ template }) => template)),
  });
  return { tracing, dispatcher, keeper, sessions, mcp };
}

/** The sessions of clients, and what stores them where they outlive the gateway. */
function composeSessions(
  { store, options, events, clock, memory: { listReader, declarations } }: Base,
  calls: CallDeps & Pick<SessionDeps, 'dispatcher'>,
  readiness: Readiness,
): Pick<CallsAndClients, 'keeper' | 'sessions'> {
  const { node: { id, worker, life = newLife() } = {}, others = {} } = options;
  const { max: maxSessions = LIMITS.sessions, idleMs = LIMITS.sessionIdleMs } = options.sessions ?? {};
  const { recover = false, share } = options.sessions ?? {};
  const bounds = { maxSessions, idleMs };
  const isKept = recover && store.kind !== 'memory';
  const keeper =
    isKept && id !== undefined
      ? new SessionKeeper({
          ...{ store: store.sessions, node: nodeOf(id, worker), life, clock },
          ...bounds,
          holders: others,
        })
      : undefined;
  const sessions = new ClientSessions({
    ...calls,
    ...bounds,
    share,
    listReader,
    declarations,
    life,
    keeper,
    isDraining: () => readiness.isDraining,
    isCutOff: others.isCutOff,
    untilLifeKnown: others.untilLifeKnown,
  });
  events.on('gateway.draining').subscribe(() => sessions.drain());
  events.on('gateway.resumed').subscribe(() => sessions.endDrain());
  return { keeper, sessions };
}

/** The inspector without its errors, which would stop the inspected actor. */
function safeInspector(inspect: ActorInspector): (event: ActorInspection) => void {
  return droppingErrors((event: ActorInspection) =>
    typeof inspect === 'function' ? inspect(event) : inspect.next?.(event),
  );
}

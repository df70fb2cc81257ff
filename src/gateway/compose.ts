// Composition root: creates and connects the parts of a gateway for its facade (gateway.ts).

import { map } from 'rxjs';
import { Dispatcher } from '../actors/calls/dispatcher.ts';
import { RetryBudget } from '../actors/calls/retries.ts';
import type { EventBus } from '../actors/event-bus.ts';
import { Fleet } from '../actors/fleet.ts';
import { Metrics } from '../actors/metrics.ts';
import { SessionKeeper } from '../actors/sessions/session-keeper.ts';
import { DEFAULT_POLICY } from '../balancing/policy.ts';
import { availableMemoryBytes } from '../config/memory.ts';
import type { ActorInspection, ActorInspector } from '../domain/actor-inspection.ts';
import type { GatewayEvent } from '../domain/events.ts';
import { DENIED_NETWORKS } from '../domain/instances/endpoint.ts';
import { ByteBudget, HeldBytes, memoryBounds } from '../domain/memory/held-bytes.ts';
import { newLife } from '../domain/nodes/life.ts';
import { nodeOf } from '../domain/nodes/nodes.ts';
import { spreadClock, systemClock } from '../domain/time/clock.ts';
import { TaskScheduler } from '../domain/time/task-scheduler.ts';
import type { Store } from '../persistence/store.ts';
import { databaseStatus } from '../registry/database-status.ts';
import { Registry } from '../registry/registry.ts';
import { RunShared } from '../registry/shared-programs.ts';
import { ToolApprovals } from '../registry/tool-approvals.ts';
import { protectedDatabase } from '../templates/command-exposure.ts';
import { Definitions } from '../templates/definitions.ts';
import { Tracing } from '../tracing/tracing.ts';
import { addressesIn } from '../transports/network-guard.ts';
import { LeaseReaper } from '../transports/stdio/lease-reaper.ts';
import { Reaper } from '../transports/stdio/process-group.ts';
import type { InProcessHandler } from '../transports/transport.ts';
import { VaultDoor } from '../vault/vault-door.ts';
import { AccountsAtBackends } from './accounts-at-backends.ts';
import { ConnectionTests } from './connection-tests.ts';
import type { GatewayOptions } from './gateway-types.ts';
import { HostedInstances } from './hosted-instances.ts';
import { Mcp } from './mcp.ts';
import { openTransportOf } from './open-transport.ts';
import type { Readiness } from './readiness.ts';
import { Sync } from './sync.ts';
import { useOnceIn } from './used-confirmations.ts';

export type GatewayDeps = ReturnType<typeof composeGateway>;

/** Connects the parts of a gateway, and starts nothing. The caller closes `events`. */
export function composeGateway(
  store: Store,
  options: GatewayOptions,
  events: EventBus,
  readiness: Readiness,
) {
  const { deniedNetworks = DENIED_NETWORKS, random = Math.random, nodeId, worker, storeChanges$ } = options;
  const { openElsewhere, isAnyDefault, hasEphemeralNodes } = options;
  const inspect = options.inspect && safeInspector(options.inspect);
  const { events$ } = events;
  const scheduler = new TaskScheduler();
  const { clock: ownClock = systemClock } = options;
  const clock = spreadClock(scheduler, ownClock);
  const { now } = clock;
  const emit = (event: GatewayEvent) => events.emit(event);
  const policy = { ...DEFAULT_POLICY, ...options.policy };
  const handlers = new Map<string, InProcessHandler>();
  const definitions = new Definitions(options.definitions);
  const protectedPaths = [
    ...(store.file === undefined ? [] : protectedDatabase(store.file)),
    ...(options.protectedPaths ?? []),
  ];
  const bounds = memoryBounds(options.memoryBytes ?? availableMemoryBytes());
  // Buffered events mostly share their bytes with unread answers, and so get half of that bound.
  const bufferedBytes = bounds.unreadAnswers.totalBytes / 2;
  const heldAnswers = new HeldBytes(bounds.backendAnswers, now);
  const declarations = new ByteBudget(bounds.declarations);
  const heldQuestions = new HeldBytes(bounds.parkedCalls, now);
  const requestBytes = new ByteBudget(options.requestBounds ?? bounds.requests);
  const reaper = new Reaper({ pipe: options.reaperPipe });
  const leaseReaper = options.sharePrograms ? new LeaseReaper(reaper) : undefined;
  const isDenied = addressesIn(deniedNetworks);
  const { connections } = options;
  const vault = connections && new VaultDoor({ ...ownClock, ...connections, store: store.oauth, isDenied });
  const accounts = connections && (connections.hasUsers === false ? 'shared' : 'all');
  const userAccounts =
    connections &&
    vault &&
    new AccountsAtBackends({
      store: store.oauth,
      vault,
      clock: ownClock,
      address: connections.address,
      fleet: () => fleet,
      accounts: store.accounts,
      roles: connections.roles,
    });
  const openTransport = openTransportOf({
    clock: ownClock,
    accounts: userAccounts,
    isDenied,
    handlers,
    scheduler,
    reaper,
    leaseReaper,
    onRefused: (serverId) => shared?.refused(serverId),
    passEnv: options.passEnv,
    user: options.programUser,
    protectedPaths,
    definitions,
    vault,
    heldAnswers,
    waitingBytes: requestBytes,
  });
  const approvals = new ToolApprovals({
    store: store.approvals,
    scheduler,
    emit,
    clock: ownClock,
    hintsOf: (template) => (fleet.has(template) ? (fleet.group(template).policy.annotate ?? {}) : {}),
    onChanged: (template) => fleet.listChanged$.next({ template, list: 'tools' }),
  });
  const { trustOf } = approvals;
  const fleet = new Fleet({
    ...clock,
    random,
    emit,
    scheduler,
    openTransport,
    inspect,
    trustOf,
    openElsewhere:
      openElsewhere && ((definition) => openElsewhere(definition, heldAnswers.of(definition.serverId))),
    dedicatedBounds: options.sessions,
    toolLists: new ByteBudget(bounds.declarations),
  });
  const shared =
    leaseReaper && new RunShared({ fleet, reaper: leaseReaper, nodeId: nodeId && nodeOf(nodeId, worker) });
  if (shared) options.sharePrograms?.(shared);
  const registry = new Registry({
    clock,
    store,
    storeChanges$,
    scheduler,
    fleet,
    shared,
    policy,
    definitions,
    approvals,
    handlers,
    emit,
    isDenied,
    protectedPaths,
    nodeId,
    worker,
    isAnyDefault,
    hasEphemeralNodes,
    accounts: accounts ?? 'none',
  });
  const tracing = new Tracing();
  const isAccepting = () => readiness.phase === 'running';
  const trace = () => tracing.spans?.embeddedTrace();
  const deps = {
    fleet,
    budget: new RetryBudget(now),
    scheduler,
    emit,
    isAccepting,
    trace,
    trustOf,
    ...clock,
  };
  const dispatcher = new Dispatcher({ ...deps, maxCallMs: options.maxCallMs });
  const recovered$ = events.on('instance.healthy').pipe(map(({ template }) => template));
  const { life = newLife() } = options;
  const { max: maxSessions, idleMs, recover = false } = options.sessions ?? {};
  const { decideOwner, successorOf, mayStore } = options;
  const keeper =
    recover && nodeId !== undefined && store.kind !== 'memory'
      ? new SessionKeeper({
          store: store.sessions,
          node: nodeOf(nodeId, worker),
          life,
          decideOwner,
          successorOf,
          mayStore,
          clock,
          maxSessions,
          idleMs,
        })
      : undefined;
  const mcp = new Mcp({
    ...deps,
    ...options,
    isDraining: () => readiness.isDraining,
    life,
    keeper,
    recovered$,
    bufferedBytes,
    declarations,
    heldQuestions,
    dispatcher,
    views: registry.views,
    userNotices$: userAccounts?.notices$,
    lists: store.kind === 'memory' ? undefined : store.lists,
    approvals,
    useOnce: useOnceIn(store.oauth, clock),
  });
  events.on('gateway.draining').subscribe(() => mcp.sessions.drain());
  events.on('gateway.resumed').subscribe(() => mcp.sessions.resume());
  events.on('gateway.closing').subscribe(() => userAccounts?.close());
  const hasView = (view: string): boolean => registry.views.find(view) !== undefined;
  const metrics = new Metrics(events$, (template) => fleet.has(template), clock, hasView);
  const sync = new Sync({ registry, definitions, ...options.discovery });
  const tests = new ConnectionTests({ openTransport, registry, ...clock });
  const host = new HostedInstances({ ...clock, fleet, requestBytes });
  const parts = {
    scheduler,
    host,
    fleet,
    registry,
    approvals,
    shared,
    accounts: userAccounts,
    dispatcher,
    mcp,
    keeper,
    metrics,
    sync,
    tests,
    tracing,
    requestBytes,
  };
  return { ...parts, clock, policy, definitions, readDatabase: databaseStatus(store, now), reaper };
}

/** Drops errors of the inspector: they would stop the inspected actor. */
function safeInspector(inspect: ActorInspector): (event: ActorInspection) => void {
  return (event) => {
    try {
      if (typeof inspect === 'function') inspect(event);
      else inspect.next?.(event);
    } catch {
      // The error is the inspector's own.
    }
  };
}

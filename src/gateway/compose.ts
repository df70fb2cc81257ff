// Composition root: creates the parts of a gateway and connects them. The facade (gateway.ts) uses them.

import { Dispatcher } from '../actors/calls/dispatcher.ts';
import { RetryBudget } from '../actors/calls/retry.ts';
import type { EventStream } from '../actors/event-stream.ts';
import { Fleet } from '../actors/fleet.ts';
import { availableMemoryBytes } from '../config/memory.ts';
import type { ActorInspection, ActorInspector } from '../domain/actor-inspection.ts';
import type { GatewayEvent } from '../domain/events.ts';
import { HeldBytes, memoryBounds } from '../domain/held-bytes.ts';
import { ownBounds } from '../domain/limits.ts';
import { type BalancerPolicy, DEFAULT_POLICY } from '../domain/policy.ts';
import { TaskScheduler } from '../domain/task-scheduler.ts';
import type { GatewayOptions } from '../gateway-types.ts';
import type { Store } from '../persistence/store.ts';
import { DatabaseStatus } from '../registry/database-status.ts';
import { Registry } from '../registry.ts';
import { protectedDatabase } from '../templates/command-exposure.ts';
import { DENIED_NETWORKS_DEFAULT, deniedBy } from '../transports/network-guard.ts';
import type { InProcessHandler } from '../transports/transport.ts';
import { alarmOf } from './alarm.ts';
import { Mcp } from './mcp.ts';
import { GATEWAY_INFO, openerOf } from './opener.ts';
import { Status } from './status.ts';
import { Sync } from './sync.ts';

/** What a gateway is made of. */
export interface GatewayDeps {
  /** Defaults for templates without settings of their own. */
  readonly policy: BalancerPolicy;
  readonly database: DatabaseStatus;
  readonly fleet: Fleet;
  readonly registry: Registry;
  readonly dispatcher: Dispatcher;
  readonly mcp: Mcp;
  readonly status: Status;
  readonly sync: Sync;
}

/** Makes them; nothing is started. `events` are ended by their owner. */
export function composeGateway(
  store: Store,
  options: GatewayOptions,
  events: EventStream,
  isAccepting: () => boolean,
): GatewayDeps {
  const { deniedNetworks = DENIED_NETWORKS_DEFAULT, random = Math.random, nodeId, storeChanges$ } = options;
  const inspect = options.inspect && guarded(options.inspect);
  const { events$ } = events;
  const scheduler = new TaskScheduler();
  const now = () => performance.now();
  const alarm = alarmOf(scheduler);
  const emit = (event: GatewayEvent) => events.emit(event);
  const policy = { ...DEFAULT_POLICY, ...options.policy };
  const handlers = new Map<string, InProcessHandler>();
  const own = ownBounds(options.sessions);
  const definitions = new Map(options.definitions?.map((each) => [each.id, each]));
  const protectedPaths = [
    ...(store.file === undefined ? [] : protectedDatabase(store.file)),
    ...(options.protectedPaths ?? []),
  ];
  const bounds = memoryBounds(options.memoryBytes ?? availableMemoryBytes());
  // Kept events mostly share their bytes with unread answers.
  const bufferedBytes = bounds.unreadAnswers.totalBytes / 2;
  const heldAnswers = new HeldBytes(bounds.backendAnswers, now);
  const open = openerOf({
    deniedNetworks,
    handlers,
    scheduler,
    passEnv: options.passEnv,
    protectedPaths,
    definitions,
    heldAnswers,
  });
  const fleet = new Fleet({ now, random, emit, alarm, open, own, inspect });
  const isDenied = deniedBy(deniedNetworks);
  const defined = new Set([...(options.templates ?? []), ...definitions.keys()]);
  const registryParts = { store, fleet, policy, defined, handlers, emit, isDenied, nodeId, storeChanges$ };
  const registry = new Registry({ ...registryParts, protectedPaths });
  const parts = { fleet, budget: new RetryBudget(now), now, alarm, emit, isAccepting };
  const dispatcher = new Dispatcher(parts);
  const mcp = new Mcp({
    ...parts,
    ...options,
    bufferedBytes,
    scheduler,
    dispatcher,
    events$,
    serverInfo: GATEWAY_INFO,
  });
  const status = new Status({ fleet, mcp, events$, definitions });
  const sync = new Sync({ registry, definitions, ...options.discovery });
  const database = new DatabaseStatus(store, now);
  return { policy, database, fleet, registry, dispatcher, mcp, status, sync };
}

/** An inspector that throws would break the actor that it looks at. */
function guarded(inspect: ActorInspector): (event: ActorInspection) => void {
  return (event) => {
    try {
      if (typeof inspect === 'function') inspect(event);
      else inspect.next?.(event);
    } catch {
      // The fault is the inspector's own; the gateway goes on.
    }
  };
}

// The parts of a gateway that its server uses besides the public API (gateway.ts): those that other nodes, the HTTP routes and
// the metrics need.

import type { KeeperCounts } from '../actors/sessions/rows/session-keeper.ts';
import { longestCallMs } from '../balancing/policy.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Registry } from '../registry/registry.ts';
import type { ActiveDefinitions } from '../templates/active-definitions.ts';
import type { GatewayParts } from './compose.ts';
import type { EventBus } from './event-bus.ts';
import type { MemoryBudgets } from './memory-budgets.ts';
import type { PromisedAnswers } from './promised-answers.ts';
import type { Readiness } from './readiness.ts';

/**
 * The parts of one gateway, as its server gets them. `requestBytes` counts the bytes of requests of callers, and of other
 * messages that wait for backends, by caller.
 */
export interface GatewayInternals
  extends Pick<GatewayParts, 'clock' | 'scheduler' | 'host' | 'backendAccounts' | 'traffic'>,
    Pick<Registry, 'storedDefinitions' | 'approvals' | 'leasedPrograms'>,
    Pick<MemoryBudgets, 'requestBytes'> {
  /** The definitions that count, of the folder or stored. */
  readonly definitions: Pick<ActiveDefinitions, 'get' | 'isInFolder'>;
  /** Drains the gateway, and announces its stop. */
  readonly readiness: Readiness;
  /** Makes requests to instances, for routes that gather lists. */
  readonly promisedAnswers: PromisedAnswers;
  /** Counts of the sessions that outlive the gateway, since its start; undefined where none do. */
  readonly keptSessions: KeeperCounts | undefined;
  /** Starts the stored instances; accepts calls when `more` is done. Called once, by createGateway or instead of it. */
  load(more?: () => Promise<void>): Promise<void>;
  /** Applies the changes of other nodes in the store. */
  catchUp(): Promise<void>;
  readonly beginLife: (life: string) => Promise<void>;
  readonly hasSession: (id: string) => boolean;
  /** Programs that run here, without dedicated processes, and calls under way. */
  readonly activity: () => GatewayParts['fleet']['activity'];
  /** The longest time that a request may take, at any template or view, in ms. */
  readonly longestRequestMs: () => number;
}

/** The internals of the gateway that has these parts. */
export function internalsOf(
  parts: GatewayParts,
  events: EventBus,
  readiness: Readiness,
  promisedAnswers: PromisedAnswers,
): GatewayInternals {
  const { clock, scheduler, memory, host, backendAccounts, traffic, definitions } = parts;
  const { sessions, fleet, keeper, registry } = parts;
  const { storedDefinitions, approvals, leasedPrograms } = registry;
  return {
    ...{ clock, scheduler, host, backendAccounts, traffic },
    ...{ definitions, storedDefinitions, approvals, leasedPrograms, requestBytes: memory.requestBytes },
    readiness,
    promisedAnswers,
    get keptSessions() {
      return keeper?.counts;
    },
    load: (more) => load(parts, events, readiness, more),
    catchUp: () => registry.catchUp(),
    beginLife: (life) => sessions.beginLife(life),
    hasSession: (id) => sessions.findAny(id) !== undefined,
    activity: () => fleet.activity,
    longestRequestMs: () => longestRequestMs(parts),
  };
}

function longestRequestMs({ fleet, registry, options: { maxCallMs } }: GatewayParts): number {
  let timeoutMs: number = LIMITS.callDefaultBoundMs;
  for (const { policy } of fleet.templates.groups)
    timeoutMs = Math.max(timeoutMs, policy.callTimeoutMs, ...Object.values(policy.toolTimeoutsMs));
  for (const { definition } of registry.views.list())
    for (const { timeout = 0 } of Object.values(definition.limits ?? {}))
      timeoutMs = Math.max(timeoutMs, timeout * 1_000);
  return longestCallMs(timeoutMs, maxCallMs);
}

async function load(
  { tracing, registry, keeper, fleet, clock }: GatewayParts,
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

// Finds a binding for a session: at the instance that the strategy chooses, and after a failure at the next one.

import { acceptsServerRequests, type ClientProfile } from '../../domain/client.ts';
import type { Clock } from '../../domain/clock.ts';
import { backendTimeout, notConnected } from '../../domain/error-catalogue.ts';
import { asGatewayError, atInstance, type GatewayError, shuttingDown } from '../../domain/errors.ts';
import type { GatewayEvent } from '../../domain/events.ts';
import { TRANSPORT_TRAITS } from '../../domain/instance.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { BalancerPolicy } from '../../domain/policy.ts';
import type { TaskScheduler } from '../../domain/task-scheduler.ts';
import { StartQueue } from '../../transports/stdio/start-queue.ts';
import type { Upstream } from '../../transports/transport.ts';
import type { Dispatcher } from '../calls/dispatcher.ts';
import type { Fleet } from '../fleet.ts';
import type { Group } from '../group.ts';
import type { LeaseHolder } from '../instances/conversation.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import type { Lease } from '../instances/leases.ts';
import { isNetworked } from '../stateless/stateless-routing.ts';
import { Binding } from './bindings.ts';

/** Of the sessions of a gateway. */
export interface SessionDeps extends Clock {
  readonly fleet: Pick<Fleet, 'group' | 'has' | 'hold' | 'release' | 'root'>;
  readonly dispatcher: Pick<Dispatcher, 'carry'>;
  /** For tasks that come due by the thousand. */
  readonly scheduler: TaskScheduler;
  readonly emit: (event: GatewayEvent) => void;
  /** False while the gateway closes: no session is opened, and no call of one begins. */
  readonly isAccepting: () => boolean;
}

export interface SessionNeeds {
  readonly group: Group;
  readonly ownerId: string;
  readonly profile: ClientProfile;
  readonly holder?: LeaseHolder | undefined;
  /** The session has set a log level, or is about to: log messages name no client. */
  readonly asksForLog: boolean;
  /** Repeats the state of the client in a new conversation, before it is used. */
  readonly restoreState?: ((upstream: Upstream, signal: AbortSignal) => Promise<void>) | undefined;
}

export interface SearchOptions {
  /** The instance to begin with. Default: the strategy chooses. */
  readonly first?: InstanceRef | undefined;
  /** The only instance that is tried. */
  readonly only?: InstanceRef | undefined;
  /** The instance that is tried only if there is no other. */
  readonly last?: InstanceRef | undefined;
  /** Time limit for the whole search, in ms; the caller aborts it then. */
  readonly withinMs: number;
}

export class Binder {
  readonly #deps: SessionDeps;
  /** False for peers that keep no dedicated conversations. Of a modern program: whether it speaks the legacy era, once known. */
  readonly #keepsDedicated = new WeakMap<Peer, boolean>();
  /** Modern programs. The first session whose client may be asked something probes whether the program speaks the legacy era. */
  readonly #eraProbes = new WeakMap<Peer, StartQueue>();

  constructor(deps: SessionDeps) {
    this.#deps = deps;
  }

  /** The instance for a new session, if there is one. */
  choose(template: string): InstanceRef | undefined {
    const { fleet } = this.#deps;
    return fleet.has(template) ? pick(fleet.group(template)) : undefined;
  }

  /** The binding at this instance, if nothing has to be opened for it. */
  at(ref: InstanceRef, needs: SessionNeeds): Binding | undefined {
    const { peer } = ref;
    const { policy } = needs.group;
    if (peer === undefined) return undefined;
    const isShared = this.#keepsDedicated.get(peer) === false && !isIsolated(ref, policy);
    return isShared || !needsDedicated(ref, peer, policy, needs) ? new Binding(ref, peer) : undefined;
  }

  /**
   * Tries to open a binding at one instance after another: the first, and at most `maxRetries` more. Rejects with the last
   * failure, or NO_HEALTHY_INSTANCE; nothing is left open then. An HTTP instance gets half of the remaining time while there is
   * another one to try.
   */
  async findBinding(
    needs: SessionNeeds,
    { first, only, last, withinMs }: SearchOptions,
    signal: AbortSignal,
  ): Promise<Binding> {
    const { now } = this.#deps;
    const { group } = needs;
    const retries = only === undefined ? group.policy.maxRetries : 0;
    const endsAtMs = now() + withinMs;
    const tried = new Set<string>();
    let failure: GatewayError | undefined;
    let ref = only ?? first ?? pick(group, tried, last);
    while (ref !== undefined) {
      tried.add(ref.id);
      const mayRetry = tried.size <= retries;
      const hasNext = mayRetry && group.pool.candidates.some(({ id }) => !tried.has(id));
      try {
        if (!hasNext || !isNetworked(ref.definition)) return await this.#open(ref, needs, signal);
        return await this.#openWithin((endsAtMs - now()) / 2, ref, needs, signal);
      } catch (thrown) {
        failure = atInstance(asGatewayError(thrown), ref.id);
        ref = mayRetry && !signal.aborted ? pick(group, tried, last) : undefined;
      }
    }
    throw failure ?? (this.#deps.isAccepting() ? group.noneHealthy() : shuttingDown());
  }

  /** Aborts an opening that takes longer. Over a network a healthy backend opens at once; only a program takes time to start. */
  async #openWithin(
    ms: number,
    ref: InstanceRef,
    needs: SessionNeeds,
    signal: AbortSignal,
  ): Promise<Binding> {
    const late = new AbortController();
    const disarm = this.#deps.alarm(Math.max(0, Math.ceil(ms)), () => late.abort());
    try {
      return await this.#open(ref, needs, AbortSignal.any([signal, late.signal]));
    } catch (thrown) {
      throw late.signal.aborted ? backendTimeout(Math.round(ms), 'no') : thrown;
    } finally {
      disarm();
    }
  }

  async #open(ref: InstanceRef, needs: SessionNeeds, signal: AbortSignal): Promise<Binding> {
    const present = this.at(ref, needs);
    if (present !== undefined) return present;
    const { peer } = ref;
    if (peer === undefined) throw notConnected();
    const { policy } = needs.group;
    const isForLegacy = peer.era === 'modern' && !isNetworked(ref.definition) && !isIsolated(ref, policy);
    const leased = isForLegacy
      ? await this.#leaseLegacy(ref, peer, needs, signal)
      : await lease(ref, needs, signal);
    const upstream = leased?.conversation.upstream;
    if (upstream === undefined) {
      this.#keepsDedicated.set(peer, false);
      const shared = this.at(ref, needs); // the instance may have a new session meanwhile
      if (shared === undefined) throw notConnected();
      return shared;
    }
    const binding = new Binding(ref, upstream.peer, leased);
    try {
      await needs.restoreState?.(upstream, signal);
      signal.throwIfAborted();
      if (!binding.isIntact) throw notConnected();
    } catch (thrown) {
      await binding.close();
      throw thrown;
    }
    return binding;
  }

  /**
   * A dedicated process is worth its cost only in the legacy era, in which a program can send requests to its client. One
   * session probes whether the program speaks that era; the others wait, and so start no process in vain.
   */
  async #leaseLegacy(
    ref: InstanceRef,
    peer: Peer,
    needs: SessionNeeds,
    signal: AbortSignal,
  ): Promise<Lease | undefined> {
    const { scheduler } = this.#deps;
    // `signal` ends the wait earlier.
    const options = { atOnce: 1, atOncePerOwner: 1, maxWaitMs: LIMITS.callLongestMs, scheduler };
    const probes = this.#eraProbes.get(peer) ?? new StartQueue(options);
    this.#eraProbes.set(peer, probes);
    const leaseIfLegacy = async (): Promise<Lease | undefined> => {
      const leased = await lease(ref, needs, signal);
      const era = leased.conversation.upstream?.peer.era;
      const isLegacy = era !== undefined && era !== 'modern';
      this.#keepsDedicated.set(peer, isLegacy); // before the others continue
      if (isLegacy) return leased;
      leased.release();
      return undefined;
    };
    const start = async () => (this.#keepsDedicated.has(peer) ? undefined : leaseIfLegacy());
    const probed = await probes.take({ ownerId: needs.ownerId, signal, start });
    return probed ?? (this.#keepsDedicated.get(peer) === true ? leaseIfLegacy() : undefined);
  }
}

/** Of an open conversation; without upstream where the backend keeps none. Rejects like the opening; aborting ends the lease. */
async function lease(
  ref: InstanceRef,
  { ownerId, profile, holder }: SessionNeeds,
  signal: AbortSignal,
): Promise<Lease> {
  const leased = ref.lease({ owner: { id: ownerId }, profile, holder });
  signal.addEventListener('abort', leased.release, { once: true });
  try {
    await leased.conversation.opening;
    return leased;
  } finally {
    signal.removeEventListener('abort', leased.release);
  }
}

/**
 * Whether a session needs a dedicated conversation. Over HTTP always: legacy backends have sessions there, and a modern one may
 * speak both eras. Over a pipe when the template requires it, or when a legacy backend may send messages or requests that cannot
 * be attributed to one client of a shared process; a modern program may speak both eras, and send requests only in the legacy
 * one. Bare backends know no clients. Source: ADR 24, ADR 48.
 */
function needsDedicated(
  ref: InstanceRef,
  { era }: Peer,
  policy: BalancerPolicy,
  { profile, asksForLog }: SessionNeeds,
): boolean {
  if (era === 'bare') return false;
  if (isNetworked(ref.definition) || isIsolated(ref, policy)) return true;
  return policy.session === 'auto' && (acceptsServerRequests(profile) || (era === 'legacy' && asksForLog));
}

/** True where the template requires a dedicated process, in whichever era. */
function isIsolated({ definition: { transport } }: InstanceRef, { session }: BalancerPolicy): boolean {
  return session === 'isolated' && TRANSPORT_TRAITS[transport].hasProcesses;
}

/** A session is no load until it calls: when all instances are full, any may be chosen. `last` only when there is no other. */
function pick(
  group: Group,
  tried: ReadonlySet<string> = new Set(),
  last?: InstanceRef,
): InstanceRef | undefined {
  const { pool } = group;
  const other = last === undefined ? undefined : pick(group, new Set([...tried, last.id]));
  return other ?? pool.pick(tried) ?? pool.pick(tried, undefined, () => true);
}

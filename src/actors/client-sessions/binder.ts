// Finds a binding for a session: an instance that the strategy chooses, and there a conversation of the session's own or a
// part in the instance's. After a failure it tries the next instance.

import { type ClientProfile, mayBeAsked } from '../../domain/client.ts';
import { backendTimeout, notConnected } from '../../domain/error-catalogue.ts';
import { asGatewayError, atInstance, type GatewayError, shuttingDown } from '../../domain/errors.ts';
import { TRANSPORT_TRAITS } from '../../domain/instance.ts';
import type { Peer } from '../../domain/mcp.ts';
import type { BalancerPolicy } from '../../domain/policy.ts';
import { SingleFlight } from '../../transports/single-flight.ts';
import type { Upstream } from '../../transports/transport.ts';
import { noneHealthy } from '../calls/no-instance-error.ts';
import type { Group } from '../group.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { DedicatedBinding, SharedBindings } from './bindings.ts';
import type { Binding, SessionDeps } from './client-session-types.ts';

/** What a session wants. */
export interface Wish {
  readonly template: string;
  readonly ownerId: string;
  readonly profile: ClientProfile;
  /** The session has set a log level, or is about to: log lines name no client. */
  readonly asksForLog: boolean;
  /** Sends the state of the client to a new conversation, before it is used. */
  readonly introduce?: (upstream: Upstream, signal: AbortSignal) => Promise<void>;
}

/** A conversation that is leased for one session alone. */
interface Leased {
  readonly upstream: Upstream;
  /** Ends the lease, and the conversation with it. Resolves when nothing is left; never rejects. */
  readonly close: () => Promise<void>;
}

/** Which instances come first. */
export interface Order {
  /** Tried before all others. */
  readonly first?: InstanceRef | undefined;
  /** No other is tried. */
  readonly only?: InstanceRef | undefined;
  /** Tried when no other instance is left. */
  readonly last?: InstanceRef | undefined;
  readonly signal: AbortSignal;
  /** Time limit for the whole search, in ms; the caller aborts it then. Default: none. */
  readonly withinMs?: number;
}

export class Binder {
  readonly #deps: SessionDeps;
  readonly shared: SharedBindings;
  /** The peers of instances that keep no conversation for a single client. */
  readonly #withoutOwn = new WeakSet<Peer>();
  /** Modern programs: the first session whose client may be asked something finds out whether the program speaks the legacy era. */
  readonly #askers = new WeakMap<Peer, SingleFlight>();
  /** Those of them that do not. */
  readonly #modernOnly = new WeakSet<Peer>();

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    this.shared = new SharedBindings(deps.alarm);
  }

  /** Chooses an instance for a new session. TEMPLATE_NOT_FOUND, NO_HEALTHY_INSTANCE. */
  choose(template: string): InstanceRef {
    const ref = pick(this.#deps.fleet.group(template), NO_IDS);
    if (ref === undefined) throw this.#noInstance(template);
    return ref;
  }

  /** The binding at this instance when nothing has to be opened for it. */
  at(ref: InstanceRef, wish: Wish): Binding | undefined {
    const { peer } = ref;
    const { policy } = this.#deps.fleet.group(wish.template);
    if (peer === undefined) return undefined;
    if (this.#needsOwn(ref, peer, policy, wish)) return undefined;
    return this.shared.join(ref, peer);
  }

  #needsOwn(ref: InstanceRef, peer: Peer, policy: BalancerPolicy, wish: Wish): boolean {
    if (this.#withoutOwn.has(peer) || !needsOwn(ref, peer, policy, wish)) return false;
    return !(this.#modernOnly.has(peer) && isForLegacy(ref, peer, policy));
  }

  /**
   * Opens a binding at one instance after the other, at most `maxRetries` after the first one. Rejects with the last
   * failure, or NO_HEALTHY_INSTANCE. Nothing is left open after a rejection. An HTTP instance gets half of the remaining
   * time while there is another one to try.
   */
  async settle(wish: Wish, { first, only, last, signal, withinMs }: Order): Promise<Binding> {
    const { fleet, now } = this.#deps;
    const group = fleet.group(wish.template);
    const endsAtMs = withinMs === undefined ? undefined : now() + withinMs;
    const tried = new Set<string>();
    let failure: GatewayError | undefined;
    while (tried.size <= group.policy.maxRetries) {
      const isFirst = tried.size === 0 && (only ?? first) !== undefined;
      const ref = isFirst ? (only ?? first) : pickWithLast(group, tried, last);
      if (ref === undefined) break;
      tried.add(ref.id);
      const hasNext = only === undefined && tried.size <= group.policy.maxRetries && hasUntried(group, tried);
      const isSpare = hasNext && !isPipe(ref) && endsAtMs !== undefined;
      try {
        if (isSpare) return await this.#openWithin((endsAtMs - now()) / 2, ref, wish, signal);
        return await this.#open(ref, wish, signal);
      } catch (thrown) {
        failure = atInstance(asGatewayError(thrown), ref.id);
        if (signal.aborted || only !== undefined) break;
      }
    }
    throw failure ?? this.#noInstance(wish.template);
  }

  /** Aborts an opening that takes longer: over a network, unlike a program that starts, a healthy backend opens at once. */
  async #openWithin(ms: number, ref: InstanceRef, wish: Wish, signal: AbortSignal): Promise<Binding> {
    const late = new AbortController();
    const disarm = this.#deps.alarm(Math.max(0, Math.ceil(ms)), () => late.abort());
    try {
      return await this.#open(ref, wish, AbortSignal.any([signal, late.signal]));
    } catch (thrown) {
      throw late.signal.aborted ? backendTimeout(Math.round(ms), 'no') : thrown;
    } finally {
      disarm();
    }
  }

  async #open(ref: InstanceRef, wish: Wish, signal: AbortSignal): Promise<Binding> {
    const present = this.at(ref, wish);
    if (present !== undefined) return present;
    const { peer } = ref;
    if (peer === undefined) throw notConnected();
    const leased = await this.#leaseOwn(ref, peer, wish, signal);
    if (leased === undefined) {
      const shared = this.at(ref, wish); // the instance may have a new session meanwhile
      if (shared === undefined) throw notConnected();
      return shared;
    }
    const { upstream, close } = leased;
    const binding = new DedicatedBinding(ref, upstream, {
      close,
      keeps: isPipe(ref),
      alarm: this.#deps.alarm,
    });
    try {
      await wish.introduce?.(upstream, signal);
      signal.throwIfAborted();
    } catch (thrown) {
      await binding.close();
      throw thrown;
    }
    return binding;
  }

  /** Undefined where only a part in the instance's conversation is possible, which is remembered. */
  async #leaseOwn(
    ref: InstanceRef,
    peer: Peer,
    wish: Wish,
    signal: AbortSignal,
  ): Promise<Leased | undefined> {
    const { policy } = this.#deps.fleet.group(wish.template);
    if (isForLegacy(ref, peer, policy)) return this.#leaseLegacy(ref, peer, wish, signal);
    const leased = await lease(ref, wish, signal);
    if (leased === undefined) this.#withoutOwn.add(peer);
    return leased;
  }

  /**
   * A process of its own is worth its price only in the legacy era: there the program can ask its client by requests.
   * One session finds out whether the program speaks that era; the others wait, and do not take places for nothing.
   */
  async #leaseLegacy(
    ref: InstanceRef,
    peer: Peer,
    wish: Wish,
    signal: AbortSignal,
  ): Promise<Leased | undefined> {
    const asker = this.#askers.get(peer) ?? new SingleFlight(false, this.#deps.scheduler);
    this.#askers.set(peer, asker);
    const opened = await asker.run(signal, async () => {
      if (this.#modernOnly.has(peer)) return undefined;
      try {
        const leased = await lease(ref, wish, signal);
        if (leased === undefined || leased.upstream.peer.era === 'legacy') return leased;
        this.#modernOnly.add(peer); // before the others go on
        void leased.close(); // it never rejects
        return undefined;
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        return { thrown }; // the others try for themselves: what refused this one may concern its owner alone
      }
    });
    if (opened !== undefined && 'thrown' in opened) throw opened.thrown;
    return opened;
  }

  #noInstance(template: string): GatewayError {
    if (!this.#deps.isAccepting()) return shuttingDown();
    return noneHealthy(template, this.#deps.fleet.members(template));
  }
}

const NO_IDS: ReadonlySet<string> = new Set();

/** Undefined where the backend keeps none for a single client. Rejects as the opening does; aborting ends the lease. */
async function lease(ref: InstanceRef, wish: Wish, signal: AbortSignal): Promise<Leased | undefined> {
  const { conversation, release } = ref.lease({ owner: { id: wish.ownerId }, profile: wish.profile });
  const close = (): Promise<void> => {
    release();
    return conversation.gone;
  };
  if (signal.aborted) release();
  signal.addEventListener('abort', release, { once: true });
  try {
    const upstream = await conversation.opening;
    return upstream === undefined ? undefined : { upstream, close };
  } finally {
    signal.removeEventListener('abort', release);
  }
}

/**
 * Whether a session needs a conversation of its own. Over HTTP: always, because there legacy backends have sessions, too,
 * and a modern one may speak both eras. Over a pipe: when the template wants it so, or when a backend may say or ask
 * something in the legacy era that cannot be attributed there; a modern program may speak both eras, too, and ask only in
 * the legacy one. Bare ones know no clients. Source: ADR 24, ADR 48.
 */
function needsOwn(ref: InstanceRef, { era }: Peer, { session }: BalancerPolicy, wish: Wish): boolean {
  if (era === 'bare') return false;
  if (!isPipe(ref) || session === 'isolated') return true;
  if (session !== 'auto') return false;
  return mayBeAsked(wish.profile) || (era === 'legacy' && wish.asksForLog);
}

/** True when a process of a session's own at a modern program would be opened only to speak the legacy era. */
function isForLegacy(ref: InstanceRef, { era }: Peer, { session }: BalancerPolicy): boolean {
  return era === 'modern' && isPipe(ref) && session !== 'isolated';
}

/** A session is no load until it calls: where all instances are full it goes to the least loaded one. */
function pick({ pool }: Group, excluding: ReadonlySet<string>): InstanceRef | undefined {
  const picked = pool.pick(excluding);
  if (picked !== undefined) return picked;
  const left = pool.candidates
    .filter(({ id }) => !excluding.has(id))
    .toSorted((one, other) => one.inFlight - other.inFlight);
  return left.find((ref) => pool.ejectionOf(ref) === undefined) ?? left[0];
}

function hasUntried({ pool }: Group, tried: ReadonlySet<string>): boolean {
  return pool.candidates.some(({ id }) => !tried.has(id));
}

function pickWithLast(
  group: Group,
  tried: ReadonlySet<string>,
  last: InstanceRef | undefined,
): InstanceRef | undefined {
  if (last === undefined || tried.has(last.id)) return pick(group, tried);
  return pick(group, new Set([...tried, last.id])) ?? pick(group, tried);
}

/** An HTTP backend has sessions of its own; a program at the end of a pipe knows one client. */
function isPipe({ definition: { transport } }: InstanceRef): boolean {
  return !TRANSPORT_TRAITS[transport].isNetworked;
}

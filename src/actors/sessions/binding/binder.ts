// Opens a binding for a session at one instance: the shared binding, or one with a conversation that is opened for the
// session. binding-search.ts has the order in which instances are tried.

import type { TemplatePolicy } from '../../../balancing/policy.ts';
import { notConnected, openingRefused } from '../../../domain/errors/backend-errors.ts';
import { isNetworked } from '../../../domain/instances/transport-kinds.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { extensionsOf } from '../../../domain/mcp/client.ts';
import type { Handshake } from '../../../domain/mcp/mcp.ts';
import type { StoredBinding } from '../../../domain/sessions/session-value.ts';
import { FairSlots } from '../../../domain/time/fair-slots.ts';
import type { TemplateGroup } from '../../fleet/template-group.ts';
import { sharedBy } from '../../instances/dedicated-conversation.ts';
import type { ConversationUse } from '../../instances/dedicated-conversations.ts';
import { InstanceRef } from '../../instances/instance-ref.ts';
import {
  type ClientNeeds,
  isIsolated,
  isShareable,
  needsDedicated,
} from '../../instances/process-sharing.ts';
import type { Feed } from '../../subscriptions/feed.ts';
import type { SessionDeps } from '../session-deps.ts';
import { Binding } from './binding.ts';
import { BindingSearch, type SearchOptions } from './binding-search.ts';

/** The most concurrent searches for recovered sessions: after the end of a node all its clients come at once. */
const MAX_RECOVERED = 64;
/**
 * A search that takes longer than this lets the next one begin, in ms: its backend may hang, or be a program that
 * starts.
 */
const RECOVERED_MS = 1_000;

/** Opens the bindings of all sessions of a gateway, and keeps those that sessions share. */
export class Binder {
  readonly deps: SessionDeps;
  /**
   * By handshake of an instance: whether it keeps dedicated conversations. False when it does not; for a modern
   * program, whether it also speaks the legacy era. Without an entry this is not known yet.
   */
  readonly #keepsDedicated = new WeakMap<Handshake, boolean>();
  /**
   * By handshake of a modern program: the slot of the one session that probes whether the program speaks the legacy
   * era.
   */
  readonly #eraProbes = new WeakMap<Handshake, FairSlots>();

  /** The binding of all sessions that share the transport of an instance, by its feed. */
  readonly #shared = new WeakMap<Feed, Binding>();
  readonly #recovered: FairSlots;

  constructor(deps: SessionDeps) {
    this.deps = deps;
    const { scheduler, clock } = deps;
    const bounds = { atOnce: MAX_RECOVERED, atOncePerShare: MAX_RECOVERED, maxHoldMs: RECOVERED_MS };
    this.#recovered = new FairSlots({ ...bounds, refusal: openingRefused, scheduler, clock });
  }

  /** The instance for a new session, as the strategy chooses; undefined when there is none. */
  choose(template: string, ownerId: string): InstanceRef | undefined {
    const { fleet } = this.deps;
    return fleet.templates.has(template)
      ? fleet.templates.group(template).pickForSession(ownerId)
      : undefined;
  }

  /** The instance of an earlier binding if it has the same registration and is healthy; undefined otherwise. */
  former({ byId }: TemplateGroup, { instanceId, serverId }: StoredBinding): InstanceRef | undefined {
    const instance = byId.get(instanceId);
    const isThat = instance instanceof InstanceRef && instance.serverId === serverId;
    return isThat && instance.state === 'healthy' ? instance : undefined;
  }

  /** The binding at this instance if nothing has to be opened for it; undefined otherwise. */
  at(ref: InstanceRef, policy: TemplatePolicy, needs: ClientNeeds): Binding | undefined {
    const { handshake, feed } = ref;
    if (handshake === undefined || feed === undefined) return undefined;
    const isShared = this.#keepsDedicated.get(handshake) === false && !isIsolated(ref, policy);
    if (!isShared && needsDedicated(ref, handshake, policy, needs)) return undefined;
    const binding = this.#shared.get(feed) ?? new Binding(ref, handshake);
    this.#shared.set(feed, binding);
    return binding;
  }

  /**
   * Tries to open a binding at one instance after another. An opening that is slow over a network continues beside the next one;
   * the first binding that opens is used, and the others are closed. Throws the last failure, or NO_HEALTHY_INSTANCE, and leaves
   * nothing open then. Source: ADR 40.
   */
  findBinding(options: SearchOptions): Promise<Binding> {
    const open = (ref: InstanceRef, signal: AbortSignal) => this.#open(ref, { ...options, signal });
    return new BindingSearch(this.deps, options, open).run();
  }

  /** Like `findBinding`, for the first binding of a recovered session: only some of these search at the same time. */
  findRecovered(options: SearchOptions): Promise<Binding> {
    // By template, too: one whose backend hangs does not delay the others.
    const shareId = `${options.ownerId} ${options.group.template}`;
    return this.#recovered.take({ shareId, signal: options.signal, start: () => this.findBinding(options) });
  }

  async #open(ref: InstanceRef, needs: SearchOptions): Promise<Binding> {
    const { signal } = needs;
    const { policy } = needs.group;
    const present = this.at(ref, policy, needs);
    if (present !== undefined) return present;
    const { handshake } = ref;
    if (handshake === undefined) throw notConnected();
    const isForLegacy =
      handshake.era === 'modern' && !isNetworked(ref.definition) && !isIsolated(ref, policy);
    const use = isForLegacy ? await this.#useLegacy(ref, handshake, needs) : await useAt(ref, needs);
    const conversation = use?.conversation.inner;
    if (conversation === undefined) {
      this.#keepsDedicated.set(handshake, false);
      const shared = this.at(ref, policy, needs); // the instance may have a new transport meanwhile
      if (shared === undefined) throw notConnected();
      return shared;
    }
    const binding = new Binding(ref, conversation.handshake, use);
    try {
      if (!binding.isShared) await needs.restoreBackendState?.(conversation, signal);
      signal.throwIfAborted();
      if (!binding.isIntact) throw notConnected();
    } catch (thrown) {
      await binding.close();
      throw thrown;
    }
    return binding;
  }

  /**
   * Takes a dedicated process of a modern program, if the program also speaks the legacy era; undefined otherwise.
   * Only in that era can it send requests to its client. One session probes the program, and the others wait, so that
   * they start no process in vain.
   */
  async #useLegacy(
    ref: InstanceRef,
    handshake: Handshake,
    needs: SearchOptions,
  ): Promise<ConversationUse | undefined> {
    const { scheduler, clock } = this.deps;
    // The signal ends the wait earlier.
    const bounds = { atOnce: 1, atOncePerShare: 1, maxWaitMs: LIMITS.callHardBoundMs };
    const options = { ...bounds, refusal: openingRefused, scheduler, clock };
    const probes = this.#eraProbes.get(handshake) ?? new FairSlots(options);
    this.#eraProbes.set(handshake, probes);
    const useIfLegacy = async (): Promise<ConversationUse | undefined> => {
      const use = await useAt(ref, needs);
      const era = use.conversation.inner?.handshake.era;
      const isLegacy = era !== undefined && era !== 'modern';
      this.#keepsDedicated.set(handshake, isLegacy); // before the others continue
      if (isLegacy) return use;
      use.conversation.refuseUses();
      use.end();
      return undefined;
    };
    const start = async () => (this.#keepsDedicated.has(handshake) ? undefined : useIfLegacy());
    const probed = await probes.take({ shareId: needs.ownerId, signal: needs.signal, start });
    return probed ?? (this.#keepsDedicated.get(handshake) === true ? useIfLegacy() : undefined);
  }
}

/**
 * Takes a conversation, and resolves when it is open. `inner` is undefined where the backend keeps no dedicated
 * conversations. Throws the error of the opening; aborting ends the use.
 */
async function useAt(ref: InstanceRef, needs: SearchOptions): Promise<ConversationUse> {
  const { group, ownerId, profile, session, signal } = needs;
  const extensions = isShareable(ref, group.policy, needs) ? extensionsOf(profile) : undefined;
  const shared = extensions === undefined ? {} : sharedBy(extensions);
  const use = ref.use({ ownerId, profile, session, ...shared });
  const abort = (): void => use.end();
  signal.addEventListener('abort', abort, { once: true });
  try {
    await use.conversation.opening;
    return use;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

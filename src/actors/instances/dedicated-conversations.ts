// The dedicated conversations of one instance: assigns them to uses, bounds their number in total and per owner, and
// emits their events. A legacy session holds an exclusive use; a call without a session holds one while it lasts (ADR
// 69). Clients that declare equal extensions, and cannot be asked anything, share a process (ADR 26).

import { hash } from 'node:crypto';
import { isOfSameUser } from '../../domain/accounts/principal.ts';
import { notConnected } from '../../domain/errors/backend-errors.ts';
import { asGatewayError, reasonOf } from '../../domain/errors/errors.ts';
import { tooMany } from '../../domain/errors/request-errors.ts';
import {
  dedicatedShareLimit,
  extensionProcessLimit,
  processLimit,
} from '../../domain/errors/session-errors.ts';
import { eventOf, type GatewayEvent } from '../../domain/events/events.ts';
import type { DedicatedBounds, InstanceDefinition } from '../../domain/instances/instance.ts';
import { hasProcesses } from '../../domain/instances/transport-kinds.ts';
import { canonicalText } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ClientProfile } from '../../domain/mcp/client.ts';
import { shareOf, UserShares } from '../../domain/memory/user-shares.ts';
import { REPLACEABLE_MS } from '../../domain/sessions/mcp-session.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import type { Closed, Conversation, Transport } from '../../transports/transport.ts';
import {
  type ConversationListener,
  type ConversationRequest,
  DedicatedConversation,
} from './dedicated-conversation.ts';

/** One use of a dedicated conversation. */
export interface ConversationUse {
  readonly conversation: DedicatedConversation;
  /** Ends the use. Idempotent. */
  readonly end: () => void;
}

export interface DedicatedConversationsOptions extends Timing {
  readonly definition: Pick<InstanceDefinition, 'template' | 'id' | 'serverId' | 'transport'>;
  readonly dedicatedBounds?: DedicatedBounds | undefined;
  /** True when another node runs the instance. */
  readonly isElsewhere?: boolean;
  /** Gets the events `upstream.*`: a conversation was opened, could not be opened, or ended. */
  readonly emit: (event: GatewayEvent) => void;
  /** The open transport of the instance; undefined while there is none. */
  readonly transport: () => Pick<Transport, 'openConversation'> | undefined;
}

/** The most dedicated conversations of a networked instance, where one costs little. Over a pipe each is a process. */
const MAX_NETWORKED = 1_024;

/** The dedicated conversations of one instance. */
export class DedicatedConversations implements ConversationListener {
  readonly #options: DedicatedConversationsOptions;
  readonly #isPipe: boolean;
  readonly #most: number;
  /** Conversations that may take further uses while they are free, by `conversationKeyOf`. */
  readonly #byKey = new Map<string, Set<DedicatedConversation>>();
  /** All conversations that count, including those that are opening or closing. */
  readonly #counted = new Set<DedicatedConversation>();
  readonly #shares: UserShares;
  /** Conversations that were replaced, until they are closed. */
  readonly #replaced = new Set<DedicatedConversation>();

  constructor(options: DedicatedConversationsOptions) {
    const { processes = LIMITS.dedicatedProcesses, share } = options.dedicatedBounds ?? {};
    this.#options = options;
    this.#isPipe = hasProcesses(options.definition);
    this.#most = this.#isPipe ? processes : MAX_NETWORKED;
    this.#shares = new UserShares(this.#most, shareOf(this.#most, share));
  }

  /** The number of further conversations that may be opened. */
  get remainingConversations(): number {
    return Math.max(0, this.#most - this.#counted.size);
  }

  /**
   * Takes a conversation: one that the same owner dedicated before with the same capabilities, or a new one. When there
   * are too many, the one that was idle longest ends, otherwise the session whose client has been away longest (ADR
   * 69); a new process waits for the end of the old one. Throws QUEUE_FULL when none can end, for the instance or for
   * the owner's share. Over a network, the caller bounds the number of uses without idle time.
   */
  use(request: ConversationRequest): ConversationUse {
    const key = conversationKeyOf(request);
    const alike = key === undefined ? [] : [...(this.#byKey.get(key) ?? [])];
    const known = alike.find(({ acceptsAnotherUse }) => acceptsAnotherUse);
    const conversation = known ?? this.#open(request, key);
    const isSession = request.session !== undefined;
    if (isSession) conversation.hold();
    else conversation.beginCall();
    let isUsed = true;
    const end = (): void => {
      if (!isUsed) return;
      isUsed = false;
      if (isSession) conversation.release();
      else conversation.endCall();
    };
    return { conversation, end };
  }

  /**
   * Ends the processes, also those that are opening. Conversations over a network continue. Resolves when all have
   * ended; never rejects.
   */
  async end(): Promise<void> {
    if (this.#isPipe) await Promise.all([...this.#counted, ...this.#replaced].map((each) => each.close()));
  }

  // --- callbacks of the conversations ----------------------------------------------------------------------

  opened({ ownerId }: DedicatedConversation, conversation: Conversation): void {
    this.#options.emit({ type: 'upstream.opened', ...this.#eventFor(ownerId), ...pidOf(conversation) });
  }

  ended({ ownerId, inner }: DedicatedConversation, { reason, isExpected }: Closed): void {
    const end = { reason, isLost: !isExpected };
    this.#options.emit({ type: 'upstream.ended', ...this.#eventFor(ownerId), ...pidOf(inner), ...end });
  }

  gone(conversation: DedicatedConversation): void {
    const { key } = conversation;
    this.#replaced.delete(conversation);
    this.#uncount(conversation);
    if (key === undefined) return;
    const alike = this.#byKey.get(key);
    alike?.delete(conversation);
    if (alike?.size === 0) this.#byKey.delete(key);
  }

  #open(request: ConversationRequest, key: string | undefined): DedicatedConversation {
    const { ownerId, idleMs = 0 } = request;
    const isCounted = this.#isPipe || idleMs > 0;
    const before = isCounted ? this.#makeRoom(request) : undefined;
    if (isCounted) this.#shares.add(ownerId);
    const open = (signal: AbortSignal) => this.#openAfter(before, request, signal);
    const conversation = new DedicatedConversation(this.#options, {
      request,
      key,
      open,
      listener: this,
    });
    if (isCounted) this.#counted.add(conversation);
    if (key !== undefined) this.#byKey.set(key, (this.#byKey.get(key) ?? new Set()).add(conversation));
    return conversation;
  }

  /**
   * Opens a conversation after the end of the one before. `signal` does not shorten this wait, because the bound
   * holds at all times.
   */
  async #openAfter(
    before: Promise<void> | undefined,
    { ownerId, profile, sharing }: ConversationRequest,
    signal: AbortSignal,
  ): Promise<Conversation | undefined> {
    if (before !== undefined) await before;
    const transport = this.#options.transport();
    if (transport === undefined) throw notConnected();
    try {
      const isShared = sharing === 'equalExtensions';
      return await transport.openConversation({ profile, signal, ownerId, isShared });
    } catch (thrown) {
      const { code } = asGatewayError(thrown);
      const failure = { code, reason: reasonOf(thrown) };
      if (!signal.aborted)
        this.#options.emit({ type: 'upstream.failed', ...this.#eventFor(ownerId), ...failure });
      throw thrown;
    }
  }

  /**
   * Makes room for one more conversation. Returns the end of the process that makes room, or undefined when there is
   * room. Throws QUEUE_FULL.
   */
  #makeRoom({ ownerId, sharing }: ConversationRequest): Promise<void> | undefined {
    const isShareFull = this.#shares.isShareFull(ownerId);
    const least = sharing === 'equalExtensions' ? this.#leastUsed(ownerId) : undefined;
    if (least === undefined && !isShareFull && this.#counted.size < this.#most) return undefined;
    const replaceable = least ?? this.#replaceableOf(isShareFull ? ownerId : undefined);
    if (replaceable !== undefined && this.#replaced.size < this.#most) {
      // Frees its capacity at once; but a new process waits for the end of the old one.
      this.#uncount(replaceable);
      this.#replaced.add(replaceable);
      const gone = replaceable.replace();
      return this.#isPipe ? gone : undefined;
    }
    if (isShareFull) throw dedicatedShareLimit(this.#shares.share);
    if (this.#isPipe) throw processLimit(this.#most);
    throw tooMany('dedicated conversations at the instance', { most: this.#most, isShare: false }, 1);
  }

  /**
   * The conversation that was idle longest, otherwise that of the session whose client has been away longest
   * (at least REPLACEABLE_MS); undefined without either.
   */
  #replaceableOf(ownerId: string | undefined): DedicatedConversation | undefined {
    const sinceMs = this.#options.clock.now() - REPLACEABLE_MS;
    const candidates = [...this.#counted].filter(
      (each) => ownerId === undefined || isOfSameUser(each.ownerId, ownerId),
    );
    const unused = candidates.filter(({ isUnused, acceptsAnotherUse }) => isUnused && acceptsAnotherUse);
    const away = candidates.filter(({ clientAwaySinceMs }) => clientAwaySinceMs <= sinceMs);
    return (
      unused.toSorted((a, b) => a.usedAtMs - b.usedAtMs)[0] ??
      away.toSorted((a, b) => a.clientAwaySinceMs - b.clientAwaySinceMs)[0]
    );
  }

  /**
   * The shared process that has to end for another one, when there are LIMITS.extensionProcesses: the one
   * whose last call is longest ago; only among those that this owner needed first, if these are at least half of all.
   * Undefined when there are fewer. Throws QUEUE_FULL when all have calls in flight.
   */
  #leastUsed(ownerId: string): DedicatedConversation | undefined {
    const shared = [...this.#counted].filter(({ sharing }) => sharing === 'equalExtensions');
    if (shared.length < LIMITS.extensionProcesses) return undefined;
    const own = shared.filter((each) => isOfSameUser(each.ownerId, ownerId));
    const candidates = own.length * 2 < shared.length ? shared : own;
    const quiet = candidates.filter(({ isOpenWithoutCalls }) => isOpenWithoutCalls);
    const [least] = quiet.toSorted((a, b) => a.usedAtMs - b.usedAtMs);
    if (least === undefined) throw extensionProcessLimit();
    return least;
  }

  #uncount(conversation: DedicatedConversation): void {
    if (this.#counted.delete(conversation)) this.#shares.release(conversation.ownerId);
  }

  #eventFor(principal: string) {
    const { definition, isElsewhere } = this.#options;
    const fields = {
      ...eventOf(this.#options.clock, definition),
      transport: definition.transport,
      principal,
    };
    return isElsewhere ? { ...fields, isElsewhere } : fields;
  }
}

/** A key that is equal for uses that may use the same conversation; undefined for a use that shares none. */
export function conversationKeyOf(request: ConversationRequest): string | undefined {
  const { ownerId, profile, sharing = 'oneUse', idleMs } = request;
  if (idleMs === undefined) return undefined;
  const whose = sharing === 'equalExtensions' ? null : ownerId;
  return JSON.stringify([sharing, whose, capabilitiesKey(profile)]);
}

/** A short text that is equal for equal capabilities. */
export function capabilitiesKey({ capabilities }: Pick<ClientProfile, 'capabilities'>): string {
  const text = canonicalText(capabilities);
  return text.length <= 256 ? text : hash('sha256', text, 'base64url');
}

function pidOf(conversation: Conversation | undefined): { readonly pid: number } | undefined {
  return conversation?.pid === undefined ? undefined : { pid: conversation.pid };
}

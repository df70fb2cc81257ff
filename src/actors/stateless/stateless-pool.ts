// Leases of conversations with legacy instances for clients without a session, and the end of all conversations of an owner. They
// are never shared between owners, nor between clients with different capabilities. instances/leases.ts bounds their number and
// idle time.

import { defer, filter, from, merge, type Observable, Subject } from 'rxjs';
import { acceptsServerRequests, type ClientProfile } from '../../domain/client.ts';
import { shuttingDown } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LEGACY_VERSIONS } from '../../domain/mcp.ts';
import { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { CallUpstream } from '../../transports/transport.ts';
import type { Conversation } from '../instances/conversation.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { tellsCallsApart } from './stateless-routing.ts';
import { StatelessUpstream } from './stateless-upstream.ts';

export interface StatelessClient {
  readonly owner: { readonly id: string };
  readonly profile: ClientProfile;
}

export type LeasingInstance = Pick<InstanceRef, 'definition' | 'lease'>;

/**
 * The use of a conversation, until `release`, which is idempotent. `isOver`: the backend sends nothing more about the call. A
 * conversation whose backend may still ask its client is not leased again: the question would reach the next call.
 */
export interface StatelessLease {
  readonly conversation: Conversation;
  /** Carries calls in the conversation; undefined until it is open. */
  readonly upstream: CallUpstream | undefined;
  /** True when it was opened for this lease. */
  readonly isNew: boolean;
  readonly release: (isOver: boolean) => void;
}

interface PooledConversation {
  readonly instance: LeasingInstance;
  upstream: CallUpstream | undefined;
}

export class StatelessPool {
  readonly #scheduler: TaskScheduler;
  readonly #pooled = new Map<Conversation, PooledConversation>();
  readonly #opened = new Subject<Conversation>();
  #isClosed = false;

  constructor(scheduler = new TaskScheduler()) {
    this.#scheduler = scheduler;
  }

  /** The number of conversations of all instances, including those that end. */
  get size(): number {
    return this.#pooled.size;
  }

  get owners(): readonly string[] {
    return [...this.#pooled.keys()].map(({ ownerId }) => ownerId);
  }

  /**
   * Leases a conversation with that instance: where its messages can be attributed to calls, one that other calls of the client
   * may use at the same time, else an exclusive one. QUEUE_FULL like Leases.lease; SHUTTING_DOWN once the pool is closed.
   */
  lease(instance: LeasingInstance, { owner, profile }: StatelessClient): StatelessLease {
    if (this.#isClosed) throw shuttingDown();
    const isExclusive = !tellsCallsApart(instance.definition, profile);
    const { conversation, isNew, release } = instance.lease({
      owner,
      profile: { ...profile, protocolVersion: LEGACY_VERSIONS[0] },
      isExclusive,
      idleMs: LIMITS.statelessIdleMs,
    });
    const forwardsMessages = isExclusive || acceptsServerRequests(profile);
    const pooled = this.#pooled.get(conversation) ?? this.#add(conversation, instance, forwardsMessages);
    let isHeld = true;
    return {
      conversation,
      get upstream() {
        return pooled.upstream;
      },
      isNew,
      release: (isOver) => {
        const mayStillAsk = !isOver && isExclusive && acceptsServerRequests(profile);
        if (isHeld && mayStillAsk && conversation.upstream !== undefined) conversation.retire();
        isHeld = false;
        release();
      },
    };
  }

  /** Cold: the conversations of that owner with the instance, present and future ones. */
  ofOwner(instance: LeasingInstance, owner: StatelessClient['owner']): Observable<Conversation> {
    return defer(() => {
      const open = [...this.#pooled.keys()].filter(({ upstream }) => upstream !== undefined);
      const isTheirs = (conversation: Conversation) =>
        this.#pooled.get(conversation)?.instance === instance && conversation.ownerId === owner.id;
      return merge(from(open), this.#opened).pipe(filter(isTheirs));
    });
  }

  /** Ends all conversations of an owner, and their calls. Resolves when nothing is left of them. */
  async endOf(ownerId: string): Promise<void> {
    const theirs = [...this.#pooled.keys()].filter((conversation) => conversation.ownerId === ownerId);
    await this.#scheduler.each(theirs, (conversation) => conversation.close());
  }

  /** Ends all conversations, and takes no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#scheduler.each([...this.#pooled.keys()], (conversation) => conversation.close());
  }

  /** `forwardsMessages`: messages of the backend outside of calls go to the call under way. */
  #add(conversation: Conversation, instance: LeasingInstance, forwardsMessages: boolean): PooledConversation {
    const pooled: PooledConversation = { instance, upstream: undefined };
    this.#pooled.set(conversation, pooled);
    void conversation.gone.then(() => this.#pooled.delete(conversation));
    conversation.opened.then(
      (upstream) => {
        pooled.upstream = forwardsMessages ? new StatelessUpstream(upstream) : upstream;
        this.#opened.next(conversation);
      },
      () => undefined, // callers that wait for it get the error
    );
    return pooled;
  }
}

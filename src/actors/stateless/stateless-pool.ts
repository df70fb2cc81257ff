// Leases of conversations with legacy instances for clients without a session, and the end of all conversations of an owner. They
// are never shared between owners, nor between clients with different capabilities. instances/leases.ts bounds their number and
// idle time.

import { defer, filter, from, merge, type Observable, Subject } from 'rxjs';
import { type ClientProfile, mayBeAsked } from '../../domain/client.ts';
import { shuttingDown } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LEGACY_VERSIONS } from '../../domain/mcp.ts';
import { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { Conversation } from '../instances/conversation.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { tellsCallsApart } from './stateless-routing.ts';

export interface StatelessClient {
  readonly owner: { readonly id: string };
  readonly profile: ClientProfile;
}

export type StatelessHost = Pick<InstanceRef, 'definition' | 'lease'>;

/**
 * The use of a conversation, until `release`, which is idempotent. `isOver`: the backend sends nothing more about the call. A
 * conversation whose backend may still ask its client is not leased again: the question would reach the next call.
 */
export interface StatelessLease {
  readonly conversation: Conversation;
  /** True when it was opened for this lease. */
  readonly isNew: boolean;
  readonly release: (isOver: boolean) => void;
}

export class StatelessPool {
  readonly #scheduler: TaskScheduler;
  readonly #hosts = new Map<Conversation, StatelessHost>();
  readonly #opened = new Subject<Conversation>();
  #isClosed = false;

  constructor(scheduler = new TaskScheduler()) {
    this.#scheduler = scheduler;
  }

  /** The number of conversations of all instances, including those that end. */
  get size(): number {
    return this.#hosts.size;
  }

  get owners(): readonly string[] {
    return [...this.#hosts.keys()].map(({ ownerId }) => ownerId);
  }

  /**
   * Leases a conversation with that instance: where its messages can be attributed to calls, one that other calls of the client
   * may use at the same time, else an exclusive one. QUEUE_FULL like Leases.lease; SHUTTING_DOWN once the pool is closed.
   */
  lease(host: StatelessHost, { owner, profile }: StatelessClient): StatelessLease {
    if (this.#isClosed) throw shuttingDown();
    const isExclusive = !tellsCallsApart(host.definition, profile);
    const { conversation, isNew, release } = host.lease({
      owner,
      profile: { ...profile, protocolVersion: LEGACY_VERSIONS[0] },
      isExclusive,
      forwardsMessages: isExclusive || mayBeAsked(profile),
      idleMs: LIMITS.statelessIdleMs,
    });
    if (isNew) this.#follow(host, conversation);
    let isHeld = true;
    return {
      conversation,
      isNew,
      release: (isOver) => {
        const mayStillAsk = !isOver && isExclusive && mayBeAsked(profile);
        if (isHeld && mayStillAsk && conversation.upstream !== undefined) conversation.retire();
        isHeld = false;
        release();
      },
    };
  }

  /** Cold: the conversations of that owner with the instance, present and future ones. */
  ofOwner(host: StatelessHost, owner: StatelessClient['owner']): Observable<Conversation> {
    return defer(() => {
      const open = [...this.#hosts.keys()].filter(({ upstream }) => upstream !== undefined);
      return merge(from(open), this.#opened).pipe(
        filter((conversation) => this.#hosts.get(conversation) === host && conversation.ownerId === owner.id),
      );
    });
  }

  /** Ends all conversations of an owner, and their calls. Resolves when nothing is left of them. */
  async endOf(ownerId: string): Promise<void> {
    const theirs = [...this.#hosts.keys()].filter((conversation) => conversation.ownerId === ownerId);
    await this.#scheduler.each(theirs, (conversation) => conversation.close());
  }

  /** Ends all conversations, and takes no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#scheduler.each([...this.#hosts.keys()], (conversation) => conversation.close());
  }

  #follow(host: StatelessHost, conversation: Conversation): void {
    this.#hosts.set(conversation, host);
    void conversation.gone.then(() => this.#hosts.delete(conversation));
    conversation.opened.then(
      () => this.#opened.next(conversation),
      () => undefined, // callers that wait for it get the error
    );
  }
}

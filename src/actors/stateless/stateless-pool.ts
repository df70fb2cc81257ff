// The conversations with legacy instances on behalf of clients without a session: their leases, and the end of all of one
// owner. Never shared between owners, nor between clients that declare different capabilities. instances/leases.ts bounds
// their number and their idle time.

import { defer, filter, from, merge, type Observable, Subject } from 'rxjs';
import { type ClientProfile, mayBeAsked } from '../../domain/client.ts';
import { shuttingDown } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LEGACY_VERSIONS } from '../../domain/mcp.ts';
import { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { Conversation } from '../instances/conversation.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { tellsCallsApart } from './stateless-routing.ts';

/** The owner and the client of a conversation. */
export interface StatelessClient {
  readonly owner: { readonly id: string };
  readonly profile: ClientProfile;
}

/** What the pool needs of an instance. */
export type StatelessHost = Pick<InstanceRef, 'definition' | 'lease'>;

/**
 * The use of a conversation, until `release`, which is idempotent. `isOver`: the backend will send nothing more about the call.
 * A conversation whose backend may still ask its client is not leased again: the question would reach the next client.
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

  /** At the pace of `scheduler` many end together. */
  constructor(scheduler = new TaskScheduler()) {
    this.#scheduler = scheduler;
  }

  /** Conversations of all instances, including those that end. */
  get size(): number {
    return this.#hosts.size;
  }

  /** Ids of the owners of conversations. */
  get owners(): readonly string[] {
    return [...this.#hosts.keys()].map(({ ownerId }) => ownerId);
  }

  /**
   * Leases a conversation with that instance: a shared one, which other calls of the same client use at the same time, where
   * its messages can be matched to their calls, else an exclusive one. QUEUE_FULL as Leases.lease; SHUTTING_DOWN once the pool was closed.
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
        const mayAskOn = !isOver && isExclusive && mayBeAsked(profile);
        if (isHeld && mayAskOn && conversation.upstream !== undefined) conversation.retire();
        isHeld = false;
        release();
      },
    };
  }

  /** Cold: the conversations of that owner with the instance, those that are open and those that will be. */
  ofOwner(host: StatelessHost, owner: StatelessClient['owner']): Observable<Conversation> {
    return defer(() => {
      const open = [...this.#hosts.keys()].filter(({ upstream }) => upstream !== undefined);
      return merge(from(open), this.#opened).pipe(
        filter((conversation) => this.#hosts.get(conversation) === host && conversation.ownerId === owner.id),
      );
    });
  }

  /** Ends all conversations of an owner, and what is under way in them. Resolves when nothing is left of them. */
  async endOf(ownerId: string): Promise<void> {
    const theirs = [...this.#hosts.keys()].filter((conversation) => conversation.ownerId === ownerId);
    await this.#scheduler.each(theirs, (conversation) => conversation.close());
  }

  /** Ends all of them, for good. */
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

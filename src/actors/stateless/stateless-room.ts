// The conversations of stateless clients with one instance: finds the one that a call may use, and the one that may go first. Whose they
// are is in their keys, which stateless-pool.ts makes.

import { queueFull } from '../../domain/backend-errors.ts';
import { OWN_BOUNDS, type OwnBounds } from '../../domain/limits.ts';
import { conversationShareLimit } from '../../domain/session-errors.ts';
import { OwnerShares } from '../instances/owner-shares.ts';
import type { StatelessConversation } from './stateless-conversation.ts';

/** Over a network a conversation costs little more than its name; on a pipe it is a process. */
const MOST_NETWORKED = 1_024;

export class StatelessRoom {
  readonly #mostOpen: number;
  readonly #byKey = new Map<string, Set<StatelessConversation>>();
  /** Those that take nobody any more and are not gone yet. */
  readonly #retired = new Set<StatelessConversation>();
  #openCount = 0;
  /** Of those that take calls. */
  readonly #shares: OwnerShares;

  constructor(isNetworked: boolean, { processes, share }: OwnBounds = OWN_BOUNDS) {
    this.#mostOpen = isNetworked ? MOST_NETWORKED : processes;
    this.#shares = new OwnerShares(this.#mostOpen, share);
  }

  /** How many there are, those that end included. */
  get size(): number {
    return this.#openCount + this.#retired.size;
  }
  /** Those that take calls, in no order that means anything. */
  get open(): StatelessConversation[] {
    return [...this.#byKey.values()].flatMap((alike) => [...alike]);
  }
  get all(): StatelessConversation[] {
    return [...this.open, ...this.#retired];
  }

  /** One that a call of that key may use. On the way of every call, hence the loop: nothing is allocated. */
  free(key: string): StatelessConversation | undefined {
    const alike = this.#byKey.get(key);
    if (alike === undefined) return undefined;
    for (const conversation of alike) {
      if (conversation.isFree) return conversation;
    }
    return undefined;
  }

  /**
   * Ends an idle one where that helps. QUEUE_FULL when that owner may open no more: all are in use, or as many have not
   * ended yet, or his share is in use.
   */
  makeRoom(ownerId: string, template: string): void {
    if (this.#shares.isFull(ownerId)) {
      if (!this.#retireOldest((one) => one.ownerId === ownerId))
        throw conversationShareLimit(this.#shares.share);
    }
    if (this.#retired.size >= this.#mostOpen) throw queueFull(template);
    if (this.#openCount >= this.#mostOpen && !this.#retireOldest(() => true)) throw queueFull(template);
  }

  /** Of those that nobody uses. False when there is none. */
  #retireOldest(isMeant: (conversation: StatelessConversation) => boolean): boolean {
    const idle = this.open.filter((conversation) => conversation.isIdle && isMeant(conversation));
    const oldest = idle.sort((one, other) => one.usedAtMs - other.usedAtMs)[0];
    oldest?.retire();
    return oldest !== undefined;
  }

  add(conversation: StatelessConversation): void {
    const alike = this.#byKey.get(conversation.key) ?? new Set();
    this.#byKey.set(conversation.key, alike.add(conversation));
    this.#openCount += 1;
    this.#shares.take(conversation.ownerId);
  }

  /** It takes nobody any more, and counts until it is gone. */
  retire(conversation: StatelessConversation): void {
    const alike = this.#byKey.get(conversation.key);
    if (alike?.delete(conversation) !== true) return;
    if (alike.size === 0) this.#byKey.delete(conversation.key);
    this.#openCount -= 1;
    this.#shares.giveBack(conversation.ownerId);
    this.#retired.add(conversation);
  }

  forget(conversation: StatelessConversation): void {
    this.#retired.delete(conversation);
  }
}

// The conversations with legacy instances on behalf of clients without a session: who may use which, how many there are.
// Never shared between owners, nor between clients that declare different capabilities. What one of them is, and when it
// ends, is stateless-conversation.ts.

import { defer, filter, from, map, merge, type Observable, Subject } from 'rxjs';
import { backendUnavailable } from '../../domain/backend-errors.ts';
import { type ClientProfile, mayBeAsked } from '../../domain/client.ts';
import type { Clock } from '../../domain/clock.ts';
import { shuttingDown } from '../../domain/errors.ts';
import { canonicalText } from '../../domain/json.ts';
import { OWN_BOUNDS, type OwnBounds } from '../../domain/limits.ts';
import { LEGACY_VERSIONS } from '../../domain/mcp.ts';
import { TaskScheduler } from '../../domain/task-scheduler.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { StatelessConversation } from './stateless-conversation.ts';
import { StatelessRoom } from './stateless-room.ts';
import { isNetworked, tellsCallsApart } from './stateless-routing.ts';

/** On whose behalf a conversation is opened. */
export interface StatelessClient {
  readonly owner: { readonly id: string };
  readonly profile: ClientProfile;
}

/** What the pool needs of an instance. */
export type StatelessHost = Pick<InstanceRef, 'template' | 'definition' | 'openUpstream'>;

/**
 * The use of a conversation, until `release`, which is idempotent. `isOver`: the backend has nothing to say about the call any
 * more. One that still may ask its client is nobody else's conversation: the next one would be asked in its place.
 */
export interface Lease {
  readonly conversation: StatelessConversation;
  /** True when it was opened for this lease. */
  readonly isNew: boolean;
  readonly release: (isOver: boolean) => void;
}

export class StatelessPool {
  readonly #clock: Clock;
  readonly #bounds: OwnBounds;
  readonly #scheduler: TaskScheduler;
  readonly #rooms = new Map<StatelessHost, StatelessRoom>();
  readonly #opened = new Subject<{
    readonly host: StatelessHost;
    readonly conversation: StatelessConversation;
  }>();
  #isClosed = false;

  /** `pace`: at which many end together. */
  constructor(clock: Clock, bounds: OwnBounds = OWN_BOUNDS, scheduler = new TaskScheduler()) {
    this.#clock = clock;
    this.#bounds = bounds;
    this.#scheduler = scheduler;
  }

  /** Conversations that are there, of all instances, those that end included. */
  get size(): number {
    return [...this.#rooms.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Ids of those who have one. */
  get owners(): readonly string[] {
    return this.#all().map(({ ownerId }) => ownerId);
  }

  /**
   * The use of a conversation with that instance: one that others of the same guest use at the same time where its calls can
   * be told apart, else one that nobody else uses meanwhile. Opened when there is none. QUEUE_FULL when too many are in use,
   * or have not ended yet: as many as there may be processes where each is one, or the owner's share of those.
   * SHUTTING_DOWN once the pool was closed.
   */
  lease(host: StatelessHost, guest: StatelessClient): Lease {
    if (this.#isClosed) throw shuttingDown();
    const { owner, profile } = guest;
    const key = canonicalText([owner.id, profile.capabilities]);
    const room = this.#room(host);
    const known = room.free(key);
    const conversation = known ?? this.#open(host, room, key, guest);
    conversation.take();
    let isHeld = true;
    const release = (isOver: boolean): void => {
      const mayAskOn = !isOver && conversation.isExclusive && mayBeAsked(profile);
      if (isHeld && mayAskOn && conversation.upstream !== undefined) conversation.retire();
      if (isHeld) conversation.giveBack();
      isHeld = false;
    };
    return { conversation, isNew: known === undefined, release };
  }

  /** Cold: the conversations of that owner with the instance, those that are open and those that will be. */
  ofOwner(host: StatelessHost, owner: StatelessClient['owner']): Observable<StatelessConversation> {
    return defer(() => {
      const open = this.#rooms.get(host)?.open ?? [];
      const later$ = this.#opened.pipe(
        filter((opened) => opened.host === host),
        map(({ conversation }) => conversation),
      );
      const now = open.filter(({ upstream }) => upstream !== undefined);
      return merge(from(now), later$).pipe(filter(({ ownerId }) => ownerId === owner.id));
    });
  }

  /** Ends all conversations of an owner, and what is under way in them. Resolves when nothing is left of them. */
  async endOf(ownerId: string): Promise<void> {
    const theirs = this.#all().filter((conversation) => conversation.ownerId === ownerId);
    await this.#scheduler.each(theirs, (conversation) => conversation.close());
  }

  /** Ends all of them, for good. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#scheduler.each(this.#all(), (conversation) => conversation.close());
  }

  #all(): StatelessConversation[] {
    return [...this.#rooms.values()].flatMap((room) => room.all);
  }

  #room(host: StatelessHost): StatelessRoom {
    const known = this.#rooms.get(host);
    if (known !== undefined) return known;
    const room = new StatelessRoom(isNetworked(host.definition), this.#bounds);
    this.#rooms.set(host, room);
    return room;
  }

  #open(
    host: StatelessHost,
    room: StatelessRoom,
    key: string,
    guest: StatelessClient,
  ): StatelessConversation {
    room.makeRoom(guest.owner.id, host.template);
    const { owner, profile } = guest;
    const isExclusive = !tellsCallsApart(host.definition, profile);
    const legacy = { ...profile, protocolVersion: LEGACY_VERSIONS[0] };
    const conversation: StatelessConversation = new StatelessConversation(this.#clock, {
      key,
      ownerId: owner.id,
      isExclusive,
      isHeard: isExclusive || mayBeAsked(profile),
      open: async (signal) => (await host.openUpstream(legacy, signal, owner.id)) ?? refuse(),
      onRetired: (gone) => this.#retire(host, room, conversation, gone),
    });
    room.add(conversation);
    conversation.opened.then(
      () => this.#opened.next({ host, conversation }),
      () => undefined, // who waits for it hears why
    );
    return conversation;
  }

  #retire(
    host: StatelessHost,
    room: StatelessRoom,
    conversation: StatelessConversation,
    gone: Promise<void>,
  ): void {
    room.retire(conversation);
    void gone.then(() => {
      room.forget(conversation);
      if (room.size === 0) this.#rooms.delete(host);
    });
  }
}

/** Only legacy backends are asked for conversations; one that keeps none has been replaced meanwhile by another. */
function refuse(): never {
  throw backendUnavailable('it is of another era now', { delivered: 'no' });
}

// Conversations with legacy instances for clients without a session. A conversation is never shared by clients
// with different capabilities, nor by several owners, except in a process for clients with equal extensions.
// instances/dedicated-conversations.ts bounds the number and the idle time of these conversations.

import { catchError, defer, EMPTY, filter, from, map, merge, mergeMap, Observable, Subject } from 'rxjs';
import type { ExchangeRequest } from '../../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../../domain/calls/exchange-event.ts';
import { shuttingDown } from '../../../domain/errors/gateway-errors.ts';
import { declarationsTooLarge } from '../../../domain/errors/session-errors.ts';
import type { JsonObject } from '../../../domain/json/json.ts';
import {
  acceptsServerRequests,
  type Client,
  extensionsOf,
  profileBytes,
  QUESTION_REFUSALS,
  type ServerMessage,
} from '../../../domain/mcp/client.ts';
import { isCustomNotice, LEGACY_VERSIONS, LOG } from '../../../domain/mcp/mcp.ts';
import type { UserShares } from '../../../domain/memory/user-shares.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import type { Conversation } from '../../../transports/transport.ts';
import { type DedicatedConversation, sharedBy } from '../../instances/dedicated-conversation.ts';
import { type ConversationUse, conversationKeyOf } from '../../instances/dedicated-conversations.ts';
import type { InstanceRef } from '../../instances/instance-ref.ts';
import { tellsCallsApart } from '../../instances/process-sharing.ts';

/** Idle time after which a conversation for clients without a session is closed. */
export const STATELESS_IDLE_MS = 60_000;

/** The dedicated conversations of requests without a session. Each is kept for a while, for the next request of its client. */
export class StatelessConversations {
  readonly #declarations: UserShares;
  readonly #scheduler: TaskScheduler;
  readonly #known = new Map<DedicatedConversation, InstanceRef>();
  readonly #added = new Subject<DedicatedConversation>();
  #isClosed = false;

  /** `declarations`: counts the memory of the client profiles of the conversations. */
  constructor(declarations: UserShares, scheduler: TaskScheduler) {
    this.#declarations = declarations;
    this.#scheduler = scheduler;
  }

  get owners(): readonly string[] {
    return this.#owned.map(({ ownerId }) => ownerId);
  }

  get #owned(): readonly DedicatedConversation[] {
    return [...this.#known.keys()].filter(({ sharing }) => sharing !== 'equalExtensions');
  }

  /**
   * Takes a conversation with this instance for one call. If its messages can be attributed to calls, further calls of
   * the client may use it at the same time. Throws QUEUE_FULL like DedicatedConversations.use, also for too large profiles,
   * and SHUTTING_DOWN after `close`.
   */
  use(instance: InstanceRef, { owner, profile }: Client): ConversationUse {
    if (this.#isClosed) throw shuttingDown();
    const sharing = tellsCallsApart(instance.definition, profile) ? 'owner' : 'oneUse';
    const use = instance.use({
      ownerId: owner.id,
      profile: { ...profile, protocolVersion: LEGACY_VERSIONS[0] },
      sharing,
      idleMs: STATELESS_IDLE_MS,
      // Messages of the backend outside of calls go to the call under way.
      wrap:
        sharing === 'oneUse' || acceptsServerRequests(profile)
          ? (conversation) => new MessagesInCalls(conversation)
          : undefined,
    });
    const { conversation } = use;
    if (!conversation.isReused) {
      const bytes = profileBytes(profile);
      if (!this.#declarations.take(owner.id, bytes)) {
        void conversation.close();
        use.end();
        throw declarationsTooLarge('QUEUE_FULL');
      }
      this.#known.set(conversation, instance);
      void conversation.gone.then(() => {
        this.#known.delete(conversation);
        this.#declarations.release(owner.id, bytes);
      });
      this.#added.next(conversation);
    }
    return use;
  }

  /**
   * Takes the conversation that clients with these extensions share. Throws QUEUE_FULL like DedicatedConversations.use, and
   * SHUTTING_DOWN after `close`.
   */
  useForExtensions(instance: InstanceRef, ownerId: string, extensions: JsonObject): ConversationUse {
    if (this.#isClosed) throw shuttingDown();
    const use = instance.use({ ownerId, ...sharedBy(extensions) });
    const { conversation } = use;
    if (!this.#known.has(conversation)) {
      this.#known.set(conversation, instance);
      void conversation.gone.then(() => this.#known.delete(conversation));
      this.#added.next(conversation);
    }
    return use;
  }

  /** Emits each open conversation that calls of this client use at the instance: present ones and later ones. Cold. */
  of(instance: InstanceRef, { owner, profile }: Client): Observable<DedicatedConversation> {
    const extensions = extensionsOf(profile);
    const extensionsKey = extensions && conversationKeyOf({ ownerId: owner.id, ...sharedBy(extensions) });
    return defer(() => merge([...this.#known.keys()], this.#added)).pipe(
      filter(({ sharing, key, ownerId }) =>
        sharing === 'equalExtensions' ? key === extensionsKey : ownerId === owner.id,
      ),
      filter((each) => this.#known.get(each) === instance),
      mergeMap((each) =>
        from(each.requiredOpening).pipe(
          map(() => each),
          catchError(() => EMPTY),
        ),
      ),
    );
  }

  /** Ends all conversations of an owner, and the calls in them. Resolves when all have ended. */
  async endOf(ownerId: string): Promise<void> {
    const theirs = this.#owned.filter((conversation) => conversation.ownerId === ownerId);
    await this.#scheduler.each(theirs, (conversation) => conversation.close());
  }

  /** Ends all conversations; later ones are refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#scheduler.each([...this.#known.keys()], (conversation) => conversation.close());
  }
}

/**
 * A conversation for calls, whose backend may send messages outside of calls, over HTTP or during a request of the gateway
 * itself. Questions and log messages are passed to a call that is under way. All its calls belong to one owner.
 */
class MessagesInCalls implements Pick<Conversation, 'exchange'> {
  readonly #inner: Conversation;
  /** The listeners of the calls under way, oldest first. */
  readonly #calls = new Set<(message: ServerMessage) => void>();

  /** Keeps the message stream of `inner` open until `inner` ends. */
  constructor(inner: Conversation) {
    this.#inner = inner;
    inner.messages$.subscribe((message) => this.#deliver(message));
  }

  exchange(request: ExchangeRequest): Observable<ExchangeEvent> {
    return new Observable((subscriber) => {
      const listener = (message: ServerMessage) => subscriber.next(message);
      this.#calls.add(listener);
      subscriber.add(() => this.#calls.delete(listener));
      subscriber.add(this.#inner.exchange(request).subscribe(subscriber));
    });
  }

  /**
   * Passes a message on: a question to the latest call, the end of an elicitation to all calls, and a log message or
   * one that MCP does not define to the only call, if there is just one.
   */
  #deliver(message: ServerMessage): void {
    if (message.kind === 'request') {
      const last = [...this.#calls].at(-1);
      if (last === undefined) message.answer(QUESTION_REFUSALS.noCall);
      else last(message);
    } else if (message.method === LOG || isCustomNotice(message.method)) {
      if (this.#calls.size === 1) for (const call of this.#calls) call(message);
    } else if (message.method === 'notifications/elicitation/complete') {
      for (const call of [...this.#calls]) call(message);
    }
  }
}

// Conversations with legacy instances for clients without a session. A conversation is never shared by clients
// with different capabilities, nor by several owners, except in a process for clients with equal extensions.
// instances/dedicated-conversations.ts bounds the number and the idle time of these conversations.
//
// Most programs list the same tools in a dedicated process as in the shared one. Those that were seen to do so are remembered,
// by the capabilities of the client: a list then needs no dedicated process until the shared one is restarted. Source: ADR 26.

import { catchError, defer, EMPTY, filter, from, map, merge, mergeMap, Observable, Subject } from 'rxjs';
import type { ExchangeRequest } from '../../../domain/calls/exchange.ts';
import type { ExchangeEvent } from '../../../domain/calls/exchange-event.ts';
import { parsedResult } from '../../../domain/calls/parsed-result.ts';
import { shuttingDown } from '../../../domain/errors/gateway-errors.ts';
import { declarationsTooLarge } from '../../../domain/errors/session-errors.ts';
import { isJsonObject, type JsonObject } from '../../../domain/json/json.ts';
import {
  acceptsServerRequests,
  type Client,
  type ClientProfile,
  extensionsOf,
  profileBytes,
  QUESTION_REFUSALS,
  type ServerMessage,
} from '../../../domain/mcp/client.ts';
import { type Handshake, isCustomNotice, LEGACY_VERSIONS, LOG } from '../../../domain/mcp/mcp.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import type { UserShares } from '../../../domain/memory/user-shares.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import type { Conversation } from '../../../transports/transport.ts';
import { type DedicatedConversation, sharedBy } from '../../instances/dedicated-conversation.ts';
import {
  type ConversationUse,
  capabilitiesKey,
  conversationKeyOf,
} from '../../instances/dedicated-conversations.ts';
import type { InstanceRef } from '../../instances/instance-ref.ts';
import { tellsCallsApart } from '../../instances/process-sharing.ts';

/** Idle time after which a conversation for clients without a session is closed. */
export const STATELESS_IDLE_MS = 60_000;

/** The largest list that is compared, in bytes. */
const MAX_LIST_BYTES = 1024 * 1024;
/** The most sets of capabilities that are remembered per backend. */
const MAX_CAPABILITIES = 64;
/** The most owners whose last end is remembered. */
const MAX_ENDED = 10_000;

/** The dedicated conversations of requests without a session. Each is kept for a while, for the next request of its client. */
export class StatelessConversations {
  readonly #declarations: UserShares;
  readonly #scheduler: TaskScheduler;
  readonly #known = new Map<DedicatedConversation, InstanceRef>();
  readonly #added = new Subject<DedicatedConversation>();
  /** By handshake of a shared conversation: the capabilities with which a client gets the same tools in a dedicated one. */
  readonly #equalTools = new WeakMap<Handshake, Set<string>>();
  /** The number of the last end of an owner's conversations. */
  readonly #ended = new LruMap<number>(MAX_ENDED);
  /** The number of ends so far. */
  ends = 0;
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
      wrap: sharing === 'oneUse' || acceptsServerRequests(profile) ? withMessagesInCalls : undefined,
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

  /** True when the instance is known to list the same tools to such a client as in its shared conversation. */
  hasEqualTools({ handshake }: InstanceRef, profile: ClientProfile): boolean {
    const known = handshake && this.#equalTools.get(handshake);
    return known?.has(capabilitiesKey(profile)) === true;
  }

  /** Compares the answer of a dedicated conversation to `tools/list` with the tools of the shared one. */
  learnTools({ handshake, tools }: InstanceRef, profile: ClientProfile, event: ExchangeEvent): void {
    if (!handshake || event.kind !== 'result' || event.result.bytes.length > MAX_LIST_BYTES) return;
    const names = allToolsOf(parsedResult(event.result));
    if (names === undefined || tools?.listsOnly(names) !== true) return;
    const known = this.#equalTools.get(handshake) ?? new Set();
    if (known.size < MAX_CAPABILITIES) this.#equalTools.set(handshake, known.add(capabilitiesKey(profile)));
  }

  /** True when the conversations of the owner were ended since `ends` had this value: its calls are sent nowhere else. */
  hasEnded(ownerId: string, since: number): boolean {
    return (this.#ended.get(ownerId) ?? 0) > since;
  }

  /** Ends all conversations of an owner, and the calls in them. Resolves when all have ended. */
  async endOf(ownerId: string): Promise<void> {
    this.ends += 1;
    this.#ended.set(ownerId, this.ends);
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
 * The conversation for calls, whose backend may send messages outside of calls, over HTTP or during a request of the gateway
 * itself. Questions and log messages are passed to a call that is under way. All its calls belong to one owner. Its message
 * stream is open until it ends.
 */
function withMessagesInCalls(conversation: Conversation): Pick<Conversation, 'exchange'> {
  /** The listeners of the calls under way, oldest first. */
  const calls = new Set<(message: ServerMessage) => void>();
  conversation.messages$.subscribe((message) => deliver(message, [...calls]));
  const exchange = (request: ExchangeRequest) =>
    new Observable<ExchangeEvent>((subscriber) => {
      const listener = (message: ServerMessage) => subscriber.next(message);
      calls.add(listener);
      subscriber.add(() => calls.delete(listener));
      subscriber.add(conversation.exchange(request).subscribe(subscriber));
    });
  return { exchange };
}

/**
 * Passes a message on: a question to the latest call, the end of an elicitation to all calls, and a log message or
 * one that MCP does not define to the only call, if there is just one.
 */
function deliver(message: ServerMessage, calls: readonly ((message: ServerMessage) => void)[]): void {
  if (message.kind === 'request') {
    const last = calls.at(-1);
    if (last === undefined) message.answer(QUESTION_REFUSALS.noCall);
    else last(message);
  } else if (message.method === LOG || isCustomNotice(message.method)) {
    if (calls.length === 1) calls[0]?.(message);
  } else if (message.method === 'notifications/elicitation/complete') {
    for (const call of calls) call(message);
  }
}

/** The names of the tools in a list; undefined when the list has a further page. */
function allToolsOf(result: unknown): readonly string[] | undefined {
  if (!isJsonObject(result) || !Array.isArray(result.tools) || result.nextCursor !== undefined)
    return undefined;
  return result.tools.map((tool: unknown) =>
    isJsonObject(tool) && typeof tool.name === 'string' ? tool.name : '',
  );
}

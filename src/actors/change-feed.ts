// Changes on the instances of a template for clients that opted in to them: list changes from the fleet, and updates of resources,
// for which it subscribes at the backends while there are subscribers. The endpoint checks permissions.

import {
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  endWith,
  filter,
  finalize,
  from,
  ignoreElements,
  map,
  merge,
  mergeMap,
  Observable,
  repeat,
  share,
  startWith,
  switchMap,
  takeUntil,
  timer,
} from 'rxjs';
import type { ClientProfile, ServerMessage, ServerNotification } from '../domain/client.ts';
import type { GatewayEvent } from '../domain/events.ts';
import { LIMITS } from '../domain/limits.ts';
import { announcesUpdates, changedList, LIST_NOTICES, type ListField, type Peer } from '../domain/mcp.ts';
import { isAboutOneOf } from '../domain/resource-uris.ts';
import type { Fleet } from './fleet.ts';
import type { InstanceRef } from './instances/instance-ref.ts';
import { backOffMs } from './instances/instance-statistics.ts';
import type { SharedListening } from './sharing/shared-listening.ts';
import type { SharedConversation, SharedSubscriptions } from './sharing/shared-subscriptions.ts';
import type { StatelessClient, StatelessPool } from './stateless/stateless-pool.ts';
import { isNetworked } from './stateless/stateless-routing.ts';

export interface ChangeFeedDeps {
  readonly fleet: Pick<Fleet, 'has' | 'refs'>;
  readonly pool: StatelessPool;
  readonly subscriptions: SharedSubscriptions;
  readonly listening: SharedListening;
  /** The events of the gateway, hot: a healthy instance may be a new one. */
  readonly events$: Observable<GatewayEvent>;
  /** Hot: lists of the template that changed; `resources` stands for their templates, too. Completes with the gateway. */
  readonly listChanges: (template: string) => Observable<ListField>;
  /** Returns [0, 1): clients whose backend came back do not all come back at the same time. */
  readonly random: () => number;
}

/** What a client opts in to. The same shape as in the ports of the endpoint. */
export interface ChangeFilter {
  readonly lists: ReadonlySet<ListField>;
  /** URIs; those above LIMITS.subscriptionsPerClient are not subscribed to. */
  readonly resources: ReadonlySet<string>;
}

/** One client, and the changes that it wants. */
interface FeedClient extends StatelessClient {
  readonly lists: ReadonlySet<ListField>;
  readonly uris: ReadonlySet<string>;
}

const NOTHING: ReadonlySet<string> = new Set();

export class ChangeFeed {
  readonly #deps: ChangeFeedDeps;
  /** Names of templates that may have a new instance. Shared: every call is an event, too, and there may be many clients. */
  readonly #arrivals$: Observable<string>;

  constructor(deps: ChangeFeedDeps) {
    this.#deps = deps;
    this.#arrivals$ = deps.events$.pipe(
      filter((event) => event.type === 'instance.healthy'),
      map((event) => event.template),
      share(),
    );
  }

  /**
   * List changes and updates of the named resources, of every instance of the template, those that come later included.
   * Cold: backends are subscribed to while there is a subscriber. Never errors; completes when the gateway closes.
   */
  changes(
    template: string,
    owner: { readonly id: string },
    profile: ClientProfile,
    { lists, resources }: ChangeFilter,
  ): Observable<ServerNotification> {
    return defer(() => {
      const changed$ = this.#deps.listChanges(template).pipe(share());
      const closed$ = changed$.pipe(ignoreElements(), endWith(true));
      const uris = new Set([...resources].slice(0, LIMITS.subscriptionsPerClient));
      const messages$ = this.#instanceMessages(template, { owner, profile, lists, uris });
      return merge(changed$.pipe(filter(isOneOf(lists)), map(listChanged)), messages$).pipe(
        takeUntil(closed$),
      );
    });
  }

  /** Messages of single instances. */
  #instanceMessages(template: string, client: FeedClient): Observable<ServerNotification> {
    return this.#instances(template).pipe(
      mergeMap((ref) =>
        ref.state$.pipe(
          map(() => ref.peer),
          distinctUntilChanged(),
          // A new session: the subscriptions of the last one went with it.
          switchMap((peer) => (peer === undefined ? EMPTY : this.#messagesOf(ref, peer, client))),
        ),
      ),
    );
  }

  /** Each instance once: those that are there, and those that come. */
  #instances(template: string): Observable<InstanceRef> {
    const { fleet } = this.#deps;
    const seen = new WeakSet<InstanceRef>();
    const isNew = (ref: InstanceRef): boolean => !seen.has(ref) && seen.add(ref).has(ref);
    return this.#arrivals$.pipe(
      filter((arrived) => arrived === template),
      startWith(undefined),
      mergeMap(() => (fleet.has(template) ? fleet.refs(template).filter(isNew) : [])),
    );
  }

  #messagesOf(ref: InstanceRef, peer: Peer, client: FeedClient): Observable<ServerNotification> {
    const { subscriptions, listening } = this.#deps;
    const { uris } = client;
    const isWanted = uris.size > 0 && announcesUpdates(peer.capabilities);
    if (peer.era === 'modern') return isWanted ? listening.updates(ref, uris) : EMPTY;
    if (isNetworked(ref.definition)) return isWanted ? this.#updatesForStateless(ref, client) : EMPTY;
    const wantedUris = isWanted ? uris : NOTHING;
    const shared$ = resourceUpdates(
      { conversation: ref, messages$: ref.messages$ },
      wantedUris,
      subscriptions,
    );
    return merge(shared$, this.#processMessages(ref, client, wantedUris));
  }

  /** Messages of the processes that run for this owner alone. */
  #processMessages(
    ref: InstanceRef,
    { owner, lists }: FeedClient,
    uris: ReadonlySet<string>,
  ): Observable<ServerNotification> {
    const { pool, subscriptions } = this.#deps;
    return pool.ofOwner(ref, owner).pipe(
      mergeMap(({ upstream, shared }) => {
        if (upstream === undefined || shared === undefined) return EMPTY;
        const { messages$ } = upstream;
        const changed$ = messages$.pipe(
          map(({ method }) => changedList(method)),
          filter((list) => list !== undefined),
          filter(isOneOf(lists)),
          map(listChanged),
          catchError(() => EMPTY), // they end with the conversation
        );
        return merge(changed$, resourceUpdates({ conversation: shared, messages$ }, uris, subscriptions));
      }),
    );
  }

  /** In a conversation of the owner's own, which is opened again, with a back-off, when it ended before the session. */
  #updatesForStateless(ref: InstanceRef, client: FeedClient): Observable<ServerNotification> {
    const { pool, subscriptions, random } = this.#deps;
    const { uris } = client;
    let tries = 0;
    return defer(() => {
      const { conversation, release } = pool.lease(ref, client);
      return from(conversation.opened).pipe(
        switchMap(({ messages$ }) => {
          const { shared } = conversation;
          tries = 0;
          return shared === undefined
            ? EMPTY
            : resourceUpdates({ conversation: shared, messages$ }, uris, subscriptions);
        }),
        finalize(() => release(true)),
      );
    }).pipe(
      catchError(() => EMPTY), // calls tell what is wrong with the instance
      repeat({
        delay: () => {
          tries += 1;
          return timer(backOffMs(tries, LIMITS.restartLongestMs, random()));
        },
      }),
    );
  }
}

function isOneOf(lists: ReadonlySet<ListField>): (list: ListField) => boolean {
  return (list) => lists.has(list) || (list === 'resources' && lists.has('resourceTemplates'));
}

function listChanged(list: ListField): ServerNotification {
  return { kind: 'notification', method: LIST_NOTICES[list], params: {} };
}

// Updates of resources in one conversation with a legacy backend: asks for them together with others, and selects the wanted
// ones among the messages of the conversation.

/** A conversation, and its messages outside of exchanges. */
interface UpdateSource {
  readonly conversation: SharedConversation;
  readonly messages$: Observable<ServerMessage>;
}

/** Cold: updates of these resources. Never errors; completes when the messages do. */
export function resourceUpdates(
  { conversation, messages$ }: UpdateSource,
  uris: ReadonlySet<string>,
  subscriptions: SharedSubscriptions,
): Observable<ServerNotification> {
  const isUpdate = (message: ServerMessage): message is ServerNotification =>
    message.kind === 'notification' &&
    message.method === 'notifications/resources/updated' &&
    isAboutOneOf(message.params.uri, uris);
  return new Observable((subscriber) => {
    subscriber.add(
      messages$
        .pipe(
          filter(isUpdate),
          catchError(() => EMPTY),
        )
        .subscribe(subscriber),
    );
    for (const uri of uris) subscriber.add(subscriptions.subscribe(conversation, uri).release);
  });
}

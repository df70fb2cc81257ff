// Changes at the instances of a template, for clients that subscribe to them: changes of lists, and updates of
// resources, for which the backends are subscribed while there are subscribers. The endpoint checks permissions, and
// which changes a client asked for.

import {
  catchError,
  concatMap,
  defer,
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
  Subject,
  switchMap,
  takeUntil,
  throttle,
} from 'rxjs';
import { isNetworked } from '../../domain/instances/transport-kinds.ts';
import { LIMITS } from '../../domain/limits.ts';
import {
  type Client,
  type ClientProfile,
  listNotice,
  type Notification,
  updateNotice,
} from '../../domain/mcp/client.ts';
import {
  announcesUpdates,
  type Handshake,
  type ListChange,
  RESOURCE_UPDATED,
  type WantedChanges,
} from '../../domain/mcp/mcp.ts';
import { backOffMs } from '../../domain/time/back-off.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import { inTask, inTasks, latestInTasks } from '../../domain/time/task-streams.ts';
import type { StatelessConversations } from '../calls/stateless/stateless-conversations.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { BACK_OFF_FORGIVEN_MS } from '../subscriptions/backend-subscription.ts';
import { type Feed, NO_URIS } from '../subscriptions/feed.ts';
import { byTemplate } from './by-template.ts';

interface ChangeFeedDeps extends Timing {
  readonly fleet: Pick<Fleet, 'added$' | 'listChanged$' | 'templates'>;
  readonly statelessConversations: StatelessConversations;
  /** A number in [0, 1), which spreads the reconnections of clients. */
  readonly random: () => number;
}

/** One subscribed stream of a client. */
interface ChangeSubscriber extends Client {
  readonly uris: ReadonlySet<string>;
  /** Emits when backends are subscribed again, after updates may have been missed. */
  readonly missed$: Subject<void>;
  /** The number of subscriptions that ended and have no successor yet. */
  ended: number;
}

/** The shortest time between two notices of missed updates, in ms: many instances may restart at once. */
const MIN_NOTICE_MS = 1_000;

/** Streams the changes at the instances of templates to clients without a session. */
export class ChangeFeed {
  readonly #deps: ChangeFeedDeps;
  readonly #listChangedOf: (template: string) => Observable<ListChange>;
  readonly #addedTo: (template: string) => Observable<InstanceRef>;

  constructor(deps: ChangeFeedDeps) {
    this.#deps = deps;
    const keyOf = ({ template, list }: ListChange) => `${list} ${template}`;
    // A backend may send thousands of changes at once, each for hundreds of streams.
    this.#listChangedOf = byTemplate(latestInTasks(deps.fleet.listChanged$, keyOf, deps.scheduler));
    this.#addedTo = byTemplate(deps.fleet.added$);
  }

  /** See Backends.changes of protocol/endpoint-backends.ts. */
  changes(
    template: string,
    owner: { readonly id: string },
    profile: ClientProfile,
    { resources }: Pick<WantedChanges, 'resources'>,
  ): Observable<Notification> {
    const listChanged$ = this.#listChangedOf(template);
    const lists$ = listChanged$.pipe(map(({ list }) => listNotice(list)));
    const messages$ = defer(() => {
      const client = { owner, profile, uris: resources, missed$: new Subject<void>(), ended: 0 };
      return merge(this.#missedUpdates(client), this.#instanceMessages(template, client));
    });
    return merge(lists$, messages$).pipe(takeUntil(listChanged$.pipe(ignoreElements(), endWith(true))));
  }

  /** Emits one update of each resource after an interruption; a further interruption starts this again. */
  #missedUpdates({ missed$, uris }: ChangeSubscriber): Observable<Notification> {
    return missed$.pipe(
      throttle(() => timer$(this.#deps.clock, MIN_NOTICE_MS), { leading: true, trailing: true }),
      switchMap(() => inTasks(uris, this.#deps.scheduler)),
      map(updateNotice),
    );
  }

  #instanceMessages(template: string, client: ChangeSubscriber): Observable<Notification> {
    return this.#refs$(template).pipe(
      mergeMap((ref) => inTask(ref, this.#deps.scheduler)),
      mergeMap((ref) =>
        this.#handshakesOf(ref).pipe(
          // The subscriptions of the previous transport ended with it.
          switchMap((handshake) =>
            handshake === undefined ? EMPTY : this.#messagesOf(ref, handshake, client),
          ),
        ),
      ),
    );
  }

  /** Cold: the present and future instances of the template that calls reach from here. */
  #refs$(template: string): Observable<InstanceRef> {
    const { fleet } = this.#deps;
    return defer(() =>
      merge(
        fleet.templates.has(template) ? fleet.templates.group(template).refs : [],
        this.#addedTo(template),
      ),
    );
  }

  /** Emits the handshake of each transport of the instance; undefined when a transport ends. */
  #handshakesOf(ref: InstanceRef): Observable<Handshake | undefined> {
    const handshakes$ = new Observable<Handshake | undefined>((subscriber) => {
      let known: Handshake | undefined;
      return ref.watch(() => {
        const { handshake, state } = ref;
        if (handshake !== known) subscriber.next(handshake);
        known = handshake;
        if (state === 'stopped') subscriber.complete();
      });
    });
    return handshakes$.pipe(concatMap((handshake) => inTask(handshake, this.#deps.scheduler)));
  }

  #messagesOf(ref: InstanceRef, handshake: Handshake, client: ChangeSubscriber): Observable<Notification> {
    const isWanted = client.uris.size > 0 && announcesUpdates(handshake.capabilities);
    const uris = isWanted ? client.uris : NO_URIS;
    const updates$ = isWanted ? this.#updatesAt(ref, handshake, client) : EMPTY;
    if (handshake.era === 'modern' || isNetworked(ref.definition)) return updates$;
    const processes$ = this.#deps.statelessConversations.of(ref, client);
    return merge(
      updates$,
      processes$.pipe(mergeMap(({ feed }) => feed?.messages(uris, { ownerId: client.owner.id }) ?? EMPTY)),
    );
  }

  /**
   * Emits the updates of an instance. A subscription that begins after others have ended takes the place of one of
   * them, and may have missed updates.
   */
  #updatesAt(ref: InstanceRef, { era }: Handshake, client: ChangeSubscriber): Observable<Notification> {
    return defer(() => {
      const isLate = client.ended > 0;
      if (isLate) client.ended -= 1;
      const isStateless = era !== 'modern' && isNetworked(ref.definition);
      const updates$ = isStateless
        ? this.#updatesForStateless(ref, client, isLate)
        : updatesOf(ref.feed, client, isLate);
      return updates$.pipe(finalize(() => (client.ended += 1)));
    });
  }

  /**
   * Emits updates from a dedicated conversation. When it ends before the transport of the instance, it is opened
   * again with a back-off, which starts again after one that lasted.
   */
  #updatesForStateless(
    ref: InstanceRef,
    client: ChangeSubscriber,
    isLate: boolean,
  ): Observable<Notification> {
    const { statelessConversations, random, clock } = this.#deps;
    let isAgain = isLate;
    let tries = 0;
    return defer(() => {
      const { conversation, end } = statelessConversations.use(ref, client);
      let openedAtMs = Number.POSITIVE_INFINITY;
      return from(conversation.requiredOpening).pipe(
        switchMap(() => {
          openedAtMs = clock.now();
          return updatesOf(conversation.feed, client, isAgain);
        }),
        finalize(() => {
          if (clock.now() - openedAtMs >= BACK_OFF_FORGIVEN_MS) tries = 0;
          isAgain = true;
          end();
        }),
      );
    }).pipe(
      catchError(() => EMPTY), // calls report what is wrong with the instance
      repeat({
        delay: () => {
          tries += 1;
          return timer$(clock, backOffMs(tries, LIMITS.restartLongestMs, random()));
        },
      }),
    );
  }
}

function updatesOf(
  feed: Feed | undefined,
  { owner, uris, missed$ }: ChangeSubscriber,
  isLate: boolean,
): Observable<Notification> {
  const messages$ =
    feed?.messages(uris, { ownerId: owner.id, missed: () => missed$.next() }, isLate) ?? EMPTY;
  return messages$.pipe(filter(({ method }) => method === RESOURCE_UPDATED));
}

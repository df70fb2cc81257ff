// Changes on the instances of a template, for clients that subscribe to them: list changes, and resource updates,
// for which it subscribes at the backends while there are subscribers. The endpoint checks permissions, and which
// changes a client opted in to.

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
  switchMap,
  takeUntil,
} from 'rxjs';
import { isNetworked } from '../../domain/instances/transport-kinds.ts';
import { LIMITS } from '../../domain/limits.ts';
import {
  type Client,
  type ClientProfile,
  listNotice,
  type ServerNotification,
} from '../../domain/mcp/client.ts';
import { announcesUpdates, type Handshake, type WantedChanges } from '../../domain/mcp/mcp.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { backOffMs } from '../back-off.ts';
import type { StatelessLeases } from '../calls/stateless/stateless-leases.ts';
import type { Fleet } from '../fleet.ts';
import type { InstanceRef } from '../instances/instance-ref.ts';
import { type Feed, UPDATED } from './feed.ts';

interface ChangeFeedDeps extends Pick<Clock, 'alarm'> {
  readonly fleet: Pick<Fleet, 'refs$' | 'listChanged$'>;
  readonly leases: StatelessLeases;
  readonly scheduler: Pick<TaskScheduler, 'run'>;
  /** Returns [0, 1): spreads the reconnections of clients. */
  readonly random: () => number;
}

interface ChangeSubscriber extends Client {
  readonly uris: ReadonlySet<string>;
}

const NOTHING: ReadonlySet<string> = new Set();

export class ChangeFeed {
  readonly #deps: ChangeFeedDeps;

  constructor(deps: ChangeFeedDeps) {
    this.#deps = deps;
  }

  /** See Backends.changes of protocol/endpoint-backends.ts. */
  changes(
    template: string,
    owner: { readonly id: string },
    profile: ClientProfile,
    { resources }: Pick<WantedChanges, 'resources'>,
  ): Observable<ServerNotification> {
    const { listChanged$ } = this.#deps.fleet;
    const lists$ = listChanged$.pipe(
      filter((change) => change.template === template),
      map(({ list }) => listNotice(list)),
    );
    const messages$ = this.#instanceMessages(template, { owner, profile, uris: resources });
    return merge(lists$, messages$).pipe(takeUntil(listChanged$.pipe(ignoreElements(), endWith(true))));
  }

  #instanceMessages(template: string, client: ChangeSubscriber): Observable<ServerNotification> {
    return this.#deps.fleet.refs$(template).pipe(
      mergeMap((ref) => this.#inTask(ref)),
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

  /** The backend of each transport of the instance; undefined at the end of one. */
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
    return handshakes$.pipe(concatMap((handshake) => this.#inTask(handshake)));
  }

  /** Emits the value in a task: thousands of clients may follow the same instance. */
  #inTask<T>(value: T): Observable<T> {
    return new Observable((subscriber) => {
      this.#deps.scheduler.run(() => {
        subscriber.next(value);
        subscriber.complete();
      });
    });
  }

  #messagesOf(
    ref: InstanceRef,
    handshake: Handshake,
    client: ChangeSubscriber,
  ): Observable<ServerNotification> {
    const isWanted = client.uris.size > 0 && announcesUpdates(handshake.capabilities);
    const uris = isWanted ? client.uris : NOTHING;
    if (handshake.era !== 'modern' && isNetworked(ref.definition))
      return isWanted ? this.#updatesForStateless(ref, client) : EMPTY;
    const updates$ = isWanted ? updatesOf(ref.feed, uris) : EMPTY;
    if (handshake.era === 'modern') return updates$;
    const processes$ = this.#deps.leases.of(ref, client);
    return merge(updates$, processes$.pipe(mergeMap(({ feed }) => feed?.messages(uris) ?? EMPTY)));
  }

  /** Updates in a dedicated conversation, which is reopened with a back-off when it ends before the transport of the instance. */
  #updatesForStateless(ref: InstanceRef, client: ChangeSubscriber): Observable<ServerNotification> {
    const { leases, random, alarm } = this.#deps;
    let tries = 0;
    return defer(() => {
      const { conversation, release } = leases.lease(ref, client);
      return from(conversation.untilOpen).pipe(
        switchMap(() => {
          tries = 0;
          return updatesOf(conversation.feed, client.uris);
        }),
        finalize(() => release(true)),
      );
    }).pipe(
      catchError(() => EMPTY), // calls report what is wrong with the instance
      repeat({
        delay: () => {
          tries += 1;
          return timer$({ alarm }, backOffMs(tries, LIMITS.restartLongestMs, random()));
        },
      }),
    );
  }
}

function updatesOf(feed: Feed | undefined, uris: ReadonlySet<string>): Observable<ServerNotification> {
  return feed?.messages(uris).pipe(filter(({ method }) => method === UPDATED)) ?? EMPTY;
}

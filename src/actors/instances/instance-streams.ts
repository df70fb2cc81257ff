// What an instance actor shows over time: its state, its session, and what that hears. Shared: a look at every snapshot of the
// actor is cheap once, not once per client that listens or is waited for.

import {
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  endWith,
  from,
  map,
  type Observable,
  of,
  share,
  shareReplay,
  startWith,
  switchMap,
  takeWhile,
} from 'rxjs';
import type { ServerMessage } from '../../domain/client.ts';
import type { InstanceState } from '../../domain/instance.ts';
import type { InstanceActor } from './instance.machine.ts';
import { stateOf } from './instance-view.ts';
import type { SessionLink } from './session.ts';

export interface InstanceStreams {
  /** Replayed and then whenever it changes; ends with `stopped`. Never errors. */
  readonly state$: Observable<InstanceState>;
  /** The present session, replayed, and then each other one, or that there is none; ends as the actor does. */
  readonly links$: Observable<SessionLink | undefined>;
  /** Hot, no replay: what the present session hears besides answers, after a restart that of the next. Completes with it. */
  readonly messages$: Observable<ServerMessage>;
}

/** Nothing is observed until somebody subscribes. */
export function streamsOf(actor: InstanceActor): InstanceStreams {
  const snapshots$ = defer(() => from(actor).pipe(startWith(actor.getSnapshot())));
  const links$ = snapshots$.pipe(
    map(({ context }) => context.link),
    distinctUntilChanged(),
    shareReplay({ bufferSize: 1, refCount: true }),
  );
  const messages$ = links$.pipe(
    switchMap((link) => link?.messages$.pipe(catchError(() => EMPTY)) ?? EMPTY),
    catchError(() => EMPTY),
    share(),
  );
  const state$ = snapshots$.pipe(
    map(stateOf),
    distinctUntilChanged(),
    catchError(() => of('stopped' as const)),
    endWith('stopped' as const),
    takeWhile((state) => state !== 'stopped', true),
    shareReplay({ bufferSize: 1, refCount: true }),
  );
  return { state$, links$, messages$ };
}

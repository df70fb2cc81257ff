// Decides when the registry is read again: after a change of the store, after a change with an unknown outcome, and until it
// succeeds. registry.ts reads and applies it.

import { filter, type Observable, pairwise, retry, Subject, Subscription, startWith } from 'rxjs';
import { asGatewayError } from '../domain/errors/errors.ts';
import type { GatewayEvent } from '../domain/events/events.ts';
import type { Clock } from '../domain/time/clock.ts';
import { timer$ } from '../domain/time/clock-streams.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import { repeatUntilDone } from './repeat-until-done.ts';

/** The shortest time between the end of a reload and the next one, in ms. */
const GAP_MS = 500;
/** Wait before changes that ended with an error are followed again, in ms. */
const RETRY_MS = 5_000;
const AWAY: RevisionChange = { kind: 'away' };

/** Follows the store from `follow` to `close`. */
export class Follower {
  readonly #requests$ = new Subject<void>();
  readonly #subscriptions = new Subscription();
  readonly #clock: Clock;

  constructor(reload: () => Promise<unknown>, emit: (event: GatewayEvent) => void, clock: Clock) {
    this.#clock = clock;
    const { wall } = clock;
    const onFailure = (thrown: unknown) =>
      emit({ type: 'registry.behind', atMs: wall(), code: asGatewayError(thrown).code });
    const onCaughtUp = () => emit({ type: 'registry.current', atMs: wall() });
    this.#subscriptions.add(
      repeatUntilDone(this.#requests$, { clock, work: reload, gapMs: GAP_MS, onFailure, onCaughtUp }),
    );
  }

  /** Subscribes until `close`, and again after an error. Hot or cold. The first answer causes a reload, as after each outage. */
  follow(storeChanges$: Observable<RevisionChange>): void {
    const changes$ = storeChanges$.pipe(
      retry({ delay: () => timer$(this.#clock, RETRY_MS) }),
      startWith(AWAY),
      pairwise(),
      filter(([before, { kind }]) => kind === 'changed' || (kind === 'answered' && before.kind === 'away')),
    );
    this.#subscriptions.add(changes$.subscribe(() => this.requestReload()));
  }

  /** Requests a reload, after a change that failed and may be stored all the same. */
  requestReload(): void {
    this.#requests$.next();
  }

  close(): void {
    this.#subscriptions.unsubscribe();
  }
}

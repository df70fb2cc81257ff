// The calls of modern clients whose legacy backend has asked its client: a table that finds them for their owner
// and bounds their number (asking-call.ts has one of them). A call without questions passes through.

import { Observable, Subscription } from 'rxjs';
import { isOfSameUser } from '../../../domain/accounts/principal.ts';
import type { AskingCalls } from '../../../domain/calls/asking-calls.ts';
import type { SourcedEvent } from '../../../domain/calls/exchange.ts';
import { backendUnavailable, callCutOff } from '../../../domain/errors/backend-errors.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { type ClientAnswer, type ClientQuestion, QUESTION_REFUSALS } from '../../../domain/mcp/client.ts';
import type { HeldBytes, Holding } from '../../../domain/memory/held-bytes.ts';
import { UserShares } from '../../../domain/memory/user-shares.ts';
import type { Clock } from '../../../domain/time/clock.ts';
import type { TaskScheduler, Timing } from '../../../domain/time/task-scheduler.ts';
import { awaitingClientRefusal } from '../../instances/call-counter.ts';
import { AskingCall, type AskingCallOptions, type AskingCallTable } from './asking-call.ts';

interface CallsWithQuestionsOptions extends Timing {
  /** Counts the memory of open questions and undelivered results. */
  readonly held: HeldBytes;
  /** Makes the id by which the owner resumes a call. It begins with the life of this node, like the id of a session. */
  readonly newId: () => string;
}

/** The calls whose client was asked, and has not got their end yet. */
export class CallsWithQuestions implements AskingCalls, AskingCallTable {
  readonly #scheduler: TaskScheduler;
  readonly alarm: Clock['alarm'];
  readonly #newId: () => string;
  readonly #calls = new Map<string, AskingCall>();
  readonly #shares = new UserShares(LIMITS.callsAwaitingClient);
  /** Calls whose exchange has ended, kept until their clients return. */
  readonly #ended = new UserShares(LIMITS.callsAwaitingClient);
  readonly #held: HeldBytes;
  #isDismissed = false;

  constructor({ scheduler, held, newId, clock: { alarm } }: CallsWithQuestionsOptions) {
    this.#newId = newId;
    this.#scheduler = scheduler;
    this.#held = held;
    this.alarm = alarm;
  }

  /** The number of calls that wait for their client, or waited before and have not ended. */
  get size(): number {
    return this.#calls.size;
  }

  /** The owners of the calls: each client of a user by itself. */
  get owners(): ReadonlySet<string> {
    return new Set(Array.from(this.#calls.values(), ({ ownerId }) => ownerId));
  }

  /**
   * See AskingCalls.follow. A waiting call continues until its deadline, and its end is kept for
   * UNREAD_END_MS. Errors with QUEUE_FULL when LIMITS.callsAwaitingClient calls wait, or the owner's share of
   * them. Calls whose exchange has ended are not counted there: when too many are kept, the oldest are given up.
   */
  follow(
    ownerId: string,
    method: string,
    events$: Observable<SourcedEvent>,
  ): Observable<SourcedEvent | ClientQuestion> {
    return new Observable((subscriber) => {
      const source = new Subscription();
      let asking: AskingCall | undefined;
      subscriber.add(() => (asking === undefined ? source.unsubscribe() : asking.leave(subscriber)));
      const subscription = events$.subscribe({
        next: (sourced) => {
          if (asking === undefined && sourced.event.kind === 'request') {
            const refusal = awaitingClientRefusal(this.#shares, ownerId);
            if (refusal !== undefined) {
              sourced.event.answer(QUESTION_REFUSALS.notAnswered);
              source.unsubscribe();
              return subscriber.error(refusal);
            }
            asking = this.#add({ ownerId, method, source, subscriber, instanceId: sourced.instanceId });
          }
          (asking ?? subscriber).next(sourced);
        },
        error: (thrown: unknown) => (asking ?? subscriber).error(thrown),
        complete: () => (asking ?? subscriber).complete(),
      });
      source.add(subscription);
    });
  }

  /**
   * See AskingCalls.resume. Questions without an answer stay open and are asked again. Unsubscribing before the end
   * cancels the exchange. The observable is for one subscriber, which subscribes at once.
   */
  resume(
    id: string,
    ownerId: string,
    method: string,
    answers: ReadonlyMap<string, ClientAnswer>,
  ): Observable<SourcedEvent | ClientQuestion> | undefined {
    const asking = this.#calls.get(id);
    if (asking?.waitsFor(ownerId, method) !== true) return undefined;
    return new Observable((subscriber) => {
      subscriber.add(() => asking.leave(subscriber));
      asking.resume(subscriber, answers);
    });
  }

  /** Ends the calls of an owner, including resumed ones. Resolves when they have ended. */
  endOf(ownerId: string): Promise<void> {
    const theirs = [...this.#calls.values()].filter((asking) => asking.ownerId === ownerId);
    const error = backendUnavailable('its caller may no longer use it', { delivered: 'unknown' });
    return this.#scheduler.each(theirs, (asking) => asking.end(error));
  }

  /**
   * Ends all calls that wait for their client, and from now on each call that would begin to wait. Resumed calls
   * continue until then.
   */
  dismiss(): Promise<void> {
    this.#isDismissed = true;
    return this.#scheduler.each([...this.#calls.values()], (asking) => {
      if (asking.isWaiting) asking.cancel();
    });
  }

  close(): Promise<void> {
    return this.#scheduler.each([...this.#calls.values()], (asking) => asking.end(callCutOff()));
  }

  // --- for its calls: see AskingCallTable ----------------------------------------------------------------------

  get isDismissed(): boolean {
    return this.#isDismissed;
  }

  hold(asking: AskingCall): Holding {
    const tooLarge = () => asking.end(backendUnavailable(TOO_LARGE, { delivered: 'unknown' }));
    return this.#held.hold(asking.ownerId, tooLarge);
  }

  ended({ ownerId }: AskingCall): void {
    this.#makeRoom(ownerId);
    this.#shares.release(ownerId);
    this.#ended.add(ownerId);
  }

  gone({ id, ownerId }: AskingCall, wasKept: boolean): void {
    this.#calls.delete(id);
    (wasKept ? this.#ended : this.#shares).release(ownerId);
  }

  #add(options: Omit<AskingCallOptions, 'table' | 'id'>): AskingCall {
    const asking = new AskingCall({ ...options, table: this, id: this.#newId() });
    this.#calls.set(asking.id, asking);
    this.#shares.add(asking.ownerId);
    return asking;
  }

  /**
   * Gives up the oldest call whose exchange has ended, if there are too many: one of this owner, if the owner's share
   * is full.
   */
  #makeRoom(ownerId: string): void {
    const isShareFull = this.#ended.isShareFull(ownerId);
    if (!isShareFull && !this.#ended.isFull) return;
    const kept = [...this.#calls.values()].filter(({ isKept }) => isKept);
    kept.find((asking) => !isShareFull || isOfSameUser(asking.ownerId, ownerId))?.cancel();
  }
}

const TOO_LARGE = 'the questions and results for absent clients reached their memory limit';

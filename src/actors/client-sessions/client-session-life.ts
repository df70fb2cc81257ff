// The actor of a session, which is there while the session is in use; a session that rests has none. The phase stays, and
// is all that is needed to go on. What may follow is client-session.machine.ts's.

import { type ActorOptions, createActor } from 'xstate';
import {
  type ClientSessionActor,
  type ClientSessionDeps,
  clientSessionMachine,
  type SessionPhase,
} from './client-session.machine.ts';

/** What the timers of an actor are set with. */
export type LifeClock = NonNullable<ActorOptions<typeof clientSessionMachine>['clock']>;

export class Life {
  readonly #duties: ClientSessionDeps;
  readonly #clock: LifeClock;
  #actor: ClientSessionActor | undefined;
  #phase: SessionPhase = 'opening';

  /** `duties.enter` is to report each phase with `entered`. */
  constructor(duties: ClientSessionDeps, clock: LifeClock) {
    this.#duties = duties;
    this.#clock = clock;
  }

  get phase(): SessionPhase {
    return this.#phase;
  }
  /** True while there is an actor, and it waits for nothing. */
  get mayRest(): boolean {
    return this.#actor !== undefined && (this.#phase === 'serving' || this.#phase === 'adrift');
  }

  /** Has an actor again. */
  wake(): void {
    if (this.#actor !== undefined || this.#phase === 'ended') return;
    const actor = createActor(clientSessionMachine, { input: this.#duties, clock: this.#clock });
    this.#actor = actor; // before it starts: it may end in there
    actor.start();
  }

  /** Goes on without an actor. */
  rest(): void {
    this.#actor?.stop();
    this.#actor = undefined;
  }

  entered(phase: SessionPhase): void {
    this.#phase = phase;
    if (phase === 'ended') this.#actor = undefined;
  }

  /** Somebody met a binding that may not be used, or there is none, or only one of the session's own would do. */
  look(needsOwn: boolean): void {
    this.wake();
    if (this.#phase === 'adrift') this.#actor?.send({ type: 'wanted' });
    else if (this.#phase === 'serving') {
      this.#actor?.send({ type: needsOwn && this.#duties.isServed() ? 'upgrade' : 'lost' });
    } else this.rested();
  }

  /** A call has ended. One that was left to finish may have been the last. */
  rested(): void {
    if (this.#phase === 'finishing') this.#actor?.send({ type: 'rested' });
  }

  end(): void {
    if (this.#phase === 'ended') return;
    if (this.#actor === undefined) this.#duties.enter('ended');
    else this.#actor.send({ type: 'end' });
  }
}

// The life of one session of a legacy client: the states of its binding, and the transitions between them. session-binding.ts
// does the work of each state; a session that rests has no actor (Life).
//
//   entering ─┬─ bound ─► serving ── lost ──► moving ── settled ──► serving
//             └─ new ────► opening ── settled ──► serving      └─ failed ──► adrift ── wanted, patience ──► moving
//
//   lost:    its conversation is over, or its instance may not be used: it moves; or stays, when it may not move and no
//            instance could take its client over; or is finishing, while calls are under way there; or ends
//   rested:  from finishing to serving, when its instance may be used again, or to ended
//   upgrade: from serving to moving and back: it needs a conversation of its own
//   end:     from everywhere to ended; so does a failed opening
//   rest:    from everywhere to resting, where the actor ends and the session goes on

import { type Actor, type AnyActorRef, createActor, fromPromise, setup } from 'xstate';
import { CLIENT_ACTORS } from '../template.machine.ts';

/**
 * State of the binding of a session. `serving`: requests may go to the binding, if that is usable. `adrift`: no instance took it.
 * `finishing`: it may not move; its calls go on where they are, and nothing new is taken.
 */
export type SessionPhase = 'opening' | 'serving' | 'moving' | 'adrift' | 'finishing' | 'ended';

export type ClientSessionEvent =
  | { readonly type: 'lost' }
  | { readonly type: 'wanted' }
  | { readonly type: 'upgrade' }
  | { readonly type: 'rested' }
  | { readonly type: 'rest' }
  | { readonly type: 'end' };

/** The actions of the machine, which the session implements. All but `settle` are synchronous and do not throw. */
export interface ClientSessionDeps {
  readonly template: string;
  readonly ownerId: string;
  /** Finds an instance, opens what is needed there and binds the session to it. Rejects with the failure; aborting calls it off. */
  settle(signal: AbortSignal): Promise<void>;
  /** Longest time for that, in ms. */
  settleMs(): number;
  /** It has a binding already. */
  isBound(): boolean;
  /** Its binding may be used, now. */
  isServed(): boolean;
  /** It may go on with another instance. */
  readonly mayMove: boolean;
  /** Ending it would not help: no other instance could serve its client. */
  readonly mayWait: boolean;
  /** Its conversation stands, and calls are under way there. */
  readonly mayFinish: boolean;
  /** Its client waits for messages of the backend. */
  readonly isListened: boolean;
  /** The session enters the phase; called again when the waiting requests are to look again. */
  enter(phase: SessionPhase): void;
  /** The failure, before the next state is entered: `settle` rejected, or took too long. */
  fail(why: { readonly error: unknown } | 'late'): void;
  /** No instance is healthy, and the session stays: waiting requests fail. */
  refuse(): void;
}

/** Wait between two attempts to find an instance for a session whose client listens. */
const PATIENCE_MS = 5_000;

export type ClientSessionActor = Actor<typeof clientSessionMachine>;

export const clientSessionMachine = setup({
  types: {
    context: {} as Pick<ClientSessionDeps, 'template' | 'ownerId'> & { readonly duties: ClientSessionDeps },
    input: {} as ClientSessionDeps,
    events: {} as ClientSessionEvent,
  },
  actors: {
    settling: fromPromise<void, ClientSessionDeps>(({ input, signal }) => input.settle(signal)),
  },
  delays: {
    longest: ({ context }) => context.duties.settleMs(),
    patience: PATIENCE_MS,
  },
  guards: {
    isBound: ({ context }) => context.duties.isBound(),
    isServed: ({ context }) => context.duties.isServed(),
    isListened: ({ context }) => context.duties.isListened,
    mayMove: ({ context }) => context.duties.mayMove,
    mayWait: ({ context }) => context.duties.mayWait,
    mayFinish: ({ context }) => context.duties.mayFinish,
  },
  actions: {
    enter: ({ context }, { phase }: { phase: SessionPhase }) => context.duties.enter(phase),
    /** An event without an error is that of the time limit. */
    fail: ({ context, event }) => context.duties.fail('error' in event ? { error: event.error } : 'late'),
    refuse: ({ context }) => context.duties.refuse(),
  },
}).createMachine({
  id: 'client-session',
  context: ({ input }) => ({ template: input.template, ownerId: input.ownerId, duties: input }),
  initial: 'entering',
  on: { end: '.ended', rest: '.resting' },
  states: {
    entering: {
      always: [{ guard: 'isBound', target: 'serving' }, { target: 'opening' }],
    },
    opening: {
      entry: { type: 'enter', params: { phase: 'opening' } },
      invoke: {
        src: 'settling',
        input: ({ context }) => context.duties,
        onDone: 'serving',
        onError: {
          target: 'ended',
          actions: 'fail',
        },
      },
      after: { longest: { target: 'ended', actions: 'fail' } },
    },
    serving: {
      entry: { type: 'enter', params: { phase: 'serving' } },
      on: {
        lost: [
          { guard: 'isServed', actions: { type: 'enter', params: { phase: 'serving' } } },
          { guard: 'mayMove', target: 'moving' },
          { guard: 'mayWait', actions: 'refuse' },
          { guard: 'mayFinish', target: 'finishing' },
          { target: 'ended' },
        ],
        upgrade: 'moving',
      },
    },
    moving: {
      entry: { type: 'enter', params: { phase: 'moving' } },
      invoke: {
        src: 'settling',
        input: ({ context }) => context.duties,
        onDone: 'serving',
        onError: [
          {
            guard: 'isServed',
            target: 'serving',
            actions: 'fail',
          },
          {
            target: 'adrift',
            actions: 'fail',
          },
        ],
      },
      after: { longest: { target: 'adrift', actions: 'fail' } },
    },
    adrift: {
      entry: { type: 'enter', params: { phase: 'adrift' } },
      on: {
        wanted: [
          { guard: 'isServed', target: 'serving' },
          { guard: 'mayMove', target: 'moving' },
          { guard: 'mayFinish', target: 'finishing' },
          { target: 'ended' },
        ],
      },
      after: { patience: { guard: 'isListened', target: 'moving' } },
    },
    finishing: {
      entry: { type: 'enter', params: { phase: 'finishing' } },
      on: {
        rested: [
          { guard: 'isServed', target: 'serving' },
          { guard: 'mayFinish', actions: { type: 'enter', params: { phase: 'finishing' } } },
          { target: 'ended' },
        ],
      },
    },
    ended: { type: 'final', entry: { type: 'enter', params: { phase: 'ended' } } },
    resting: { type: 'final' },
  },
});

/**
 * The actor of a session, which is there while the session is in use; a session that rests has none. The phase stays, and is all
 * that is needed to go on.
 */
export class Life {
  readonly #duties: ClientSessionDeps;
  readonly #root: AnyActorRef | undefined;
  #actor: ClientSessionActor | undefined;
  #phase: SessionPhase = 'opening';

  /** `duties.enter` is to report each phase with `entered`. `root`: the parent of the actor. Default: none, which only specs use. */
  constructor(duties: ClientSessionDeps, root?: AnyActorRef) {
    this.#duties = duties;
    this.#root = root;
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
    const actor = createActor(clientSessionMachine, {
      id: CLIENT_ACTORS.session,
      ...(this.#root && { parent: this.#root }),
      input: this.#duties,
    });
    this.#actor = actor; // before it starts: it may end in there
    actor.start();
  }

  /** Goes on without an actor. */
  rest(): void {
    this.#actor?.send({ type: 'rest' });
    this.#actor = undefined;
  }

  entered(phase: SessionPhase): void {
    this.#phase = phase;
    if (phase === 'ended') this.#actor = undefined;
  }

  /** A request met a binding that may not be used, or no binding, or needs a conversation of the session's own. */
  look(needsOwn: boolean): void {
    this.wake();
    if (this.#phase === 'adrift') this.#actor?.send({ type: 'wanted' });
    else if (this.#phase === 'serving') {
      this.#actor?.send({ type: needsOwn && this.#duties.isServed() ? 'upgrade' : 'lost' });
    } else this.rested();
  }

  /** A call has ended. It may have been the last one of a session that is finishing. */
  rested(): void {
    if (this.#phase === 'finishing') this.#actor?.send({ type: 'rested' });
  }

  end(): void {
    if (this.#phase === 'ended') return;
    if (this.#actor === undefined) this.#duties.enter('ended');
    else this.#actor.send({ type: 'end' });
  }
}

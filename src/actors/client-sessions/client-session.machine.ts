// The states of the binding of one legacy session, and the transitions between them. session-binding.ts does the work of each
// state; a parked session has no actor.
//
//   entering ─┬─ bound ─► serving ── lost, upgrade ──► binding ── bound ──► serving
//             └─ new ───► binding                        └─ failed ──► unbound ── requested, retryDelay ──► binding
//
//   lost:      the conversation is over, or the instance may not be used: the session moves, or is unbound for a while if it has just
//              moved; or, when it may not move, keeps its binding if no other instance could serve its client, or is finishing while
//              calls are under way there, or ends
//   upgrade:   a dedicated conversation is needed
//   failed:    a binding that is still usable is kept; a session without a first binding ends
//   callEnded: from finishing to serving, when the instance may be used again, or to ended
//   end:       from everywhere to ended
//   park:      from everywhere to parked, where the actor ends and the session remains

import { type Actor, fromPromise, raise, setup } from 'xstate';

/**
 * State of the binding of a session. `serving`: requests may use the binding, if that is usable. `unbound`: no instance took the
 * session, or it pauses. `finishing`: the session may not move; its calls continue where they are, and no new ones are taken.
 */
export type SessionPhase = 'binding' | 'serving' | 'unbound' | 'finishing' | 'ended';

export type ClientSessionEvent =
  | { readonly type: 'lost' }
  | { readonly type: 'requested' }
  | { readonly type: 'upgrade' }
  | { readonly type: 'callEnded' }
  | { readonly type: 'park' }
  | { readonly type: 'end' };

/** The session as the machine uses it. All but `bind` are synchronous and do not throw. */
export interface ClientSessionDeps {
  readonly template: string;
  readonly ownerId: string;
  /** Finds an instance, opens what is needed there and binds the session to it. Rejects with the failure. */
  bind(signal: AbortSignal): Promise<void>;
  bindTimeoutMs(): number;
  /** Undefined before the first one. */
  readonly binding: object | undefined;
  isServed(): boolean;
  readonly mayMove: boolean;
  /** It has just moved, may move again, and no request waits: a backend that always fails is not opened again without a pause. */
  readonly mayPause: boolean;
  /** Ending the session would not help: no other instance could serve its client. */
  readonly mayWait: boolean;
  /** The conversation is intact, and calls are under way there. */
  readonly mayFinish: boolean;
  readonly isListened: boolean;
  /** The session enters the phase; called again when waiting requests are to check the binding again. */
  enter(phase: SessionPhase): void;
  /** `bind` rejected, or took too long; called before the next state is entered. */
  fail(why: { readonly error: unknown } | 'late'): void;
  /** The session keeps its binding, which cannot be used now: waiting requests fail. */
  refuse(): void;
}

/** Wait between two attempts to find an instance for a session whose client listens. */
export const RETRY_DELAY_MS = 5_000;

/** No new binding was found in time. */
const FAILED = [
  { guard: 'isServed', target: 'serving', actions: 'fail' },
  { guard: 'isBound', target: 'unbound', actions: 'fail' },
  { target: 'ended', actions: 'fail' },
] as const;

/** The binding cannot be used. */
const LOST = [
  { guard: 'mayMove', target: 'binding' },
  { guard: 'mayWait', actions: 'refuse' },
  { guard: 'mayFinish', target: 'finishing' },
  { target: 'ended' },
] as const;

export type ClientSessionActor = Actor<typeof clientSessionMachine>;

export const clientSessionMachine = setup({
  types: {
    context: {} as Pick<ClientSessionDeps, 'template' | 'ownerId'> & { readonly deps: ClientSessionDeps },
    input: {} as ClientSessionDeps,
    events: {} as ClientSessionEvent,
  },
  actors: {
    binding: fromPromise<void, ClientSessionDeps>(({ input, signal }) => input.bind(signal)),
  },
  delays: {
    longest: ({ context }) => context.deps.bindTimeoutMs(),
    retryDelay: RETRY_DELAY_MS,
  },
  guards: {
    isBound: ({ context }) => context.deps.binding !== undefined,
    isServed: ({ context }) => context.deps.isServed(),
    isListened: ({ context }) => context.deps.isListened,
    mayMove: ({ context }) => context.deps.mayMove,
    mayPause: ({ context }) => context.deps.mayPause,
    mayWait: ({ context }) => context.deps.mayWait,
    mayFinish: ({ context }) => context.deps.mayFinish,
  },
  actions: {
    enter: ({ context }, { phase }: { phase: SessionPhase }) => context.deps.enter(phase),
    /** An event without an error is that of the time limit. */
    fail: ({ context, event }) => context.deps.fail('error' in event ? { error: event.error } : 'late'),
    refuse: ({ context }) => context.deps.refuse(),
  },
}).createMachine({
  id: 'client-session',
  context: ({ input }) => ({ template: input.template, ownerId: input.ownerId, deps: input }),
  initial: 'entering',
  on: { end: '.ended', park: '.parked' },
  states: {
    entering: {
      always: [{ guard: 'isBound', target: 'serving' }, { target: 'binding' }],
    },
    binding: {
      entry: { type: 'enter', params: { phase: 'binding' } },
      invoke: {
        src: 'binding',
        input: ({ context }) => context.deps,
        onDone: 'serving',
        onError: FAILED,
      },
      after: { longest: FAILED },
    },
    serving: {
      entry: { type: 'enter', params: { phase: 'serving' } },
      on: {
        lost: [
          { guard: 'isServed', actions: { type: 'enter', params: { phase: 'serving' } } },
          { guard: 'mayPause', target: 'unbound' },
          ...LOST,
        ],
        upgrade: 'binding',
      },
    },
    unbound: {
      entry: { type: 'enter', params: { phase: 'unbound' } },
      on: { requested: [{ guard: 'isServed', target: 'serving' }, ...LOST] },
      // Entered again, so that the session tries again after the next delay, too.
      after: {
        retryDelay: {
          guard: 'isListened',
          target: 'unbound',
          reenter: true,
          actions: raise({ type: 'requested' }),
        },
      },
    },
    finishing: {
      entry: { type: 'enter', params: { phase: 'finishing' } },
      on: {
        callEnded: [
          { guard: 'isServed', target: 'serving' },
          { guard: 'mayFinish', actions: { type: 'enter', params: { phase: 'finishing' } } },
          { target: 'ended' },
        ],
      },
    },
    ended: { type: 'final', entry: { type: 'enter', params: { phase: 'ended' } } },
    parked: { type: 'final' },
  },
});

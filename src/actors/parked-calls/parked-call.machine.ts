// The states of one call whose backend asks its client: when the client gets the questions, how long it may take, and
// when all is over. parked-call.ts has the questions, the buffered messages and the subscriber; no answer passes here.
//
//   gathering ── 5 ms ──► parked (asks) ── resumed ──► running ── asked ──► gathering …
//                           │ 10 min ──► ended (expires)                  over, from anywhere ──► ended

import { type ActorRefFrom, setup } from 'xstate';
import { LIMITS } from '../../domain/limits.ts';

/** What the machine makes happen. */
export interface ParkedCallActions {
  readonly ownerId: string;
  /** Tells the client what its backend wants to know, and lets it go. */
  readonly ask: () => void;
  /** Ends the exchange of a client that never came back. */
  readonly expire: () => void;
}

export type ParkedCallEvent =
  | { readonly type: 'asked' }
  | { readonly type: 'resumed' }
  | { readonly type: 'over' };
export type ParkedCallActor = ActorRefFrom<typeof parkedCallMachine>;

/** Requests that come so close together reach the client as one, in ms. */
const GATHERING_MS = 5;

export const parkedCallMachine = setup({
  types: {
    context: {} as ParkedCallActions,
    events: {} as ParkedCallEvent,
    input: {} as ParkedCallActions,
  },
  delays: { gathered: GATHERING_MS, forgotten: LIMITS.parkedCallMs },
  actions: {
    ask: ({ context }) => context.ask(),
    expire: ({ context }) => context.expire(),
  },
}).createMachine({
  id: 'parked call',
  context: ({ input }) => input,
  initial: 'gathering',
  on: { over: '.ended' },
  states: {
    gathering: { after: { gathered: 'parked' } },
    parked: {
      entry: 'ask',
      on: { resumed: 'running' },
      after: { forgotten: { target: 'ended', actions: 'expire' } },
    },
    running: { on: { asked: 'gathering' } },
    ended: { type: 'final' },
  },
});

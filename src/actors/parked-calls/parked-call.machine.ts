// The states of one call whose backend asks its client: when the client gets the questions, and how long it may take to answer.
// parked-call.ts has the questions, the buffered messages and the subscriber; no answer passes here.
//
//   gathering ── 5 ms ──► parked (asks) ── resumed ──► running ── asked ──► gathering …
//                           │ 10 min ──► ended (expires)                  over, from anywhere ──► ended

import { type ActorRefFrom, setup } from 'xstate';
import { LIMITS } from '../../domain/limits.ts';

/** The owner of the call, and the actions of the machine. */
export interface ParkedCallActions {
  readonly ownerId: string;
  /** Sends the questions to the client, and ends its request. */
  readonly ask: () => void;
  /** Ends the exchange: the client did not return in time. */
  readonly expire: () => void;
}

export type ParkedCallEvent =
  | { readonly type: 'asked' }
  | { readonly type: 'resumed' }
  | { readonly type: 'over' };
export type ParkedCallActor = ActorRefFrom<typeof parkedCallMachine>;

/** Questions within this time reach the client together, in ms. */
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

// The supervisor of a template reports which of its instance actors ended, and survives their crashes.
//
//   template   supervising ── xstate.done / xstate.error ──► (emits instance.ended)

import { type ActorRefFrom, type DoneActorEvent, type ErrorActorEvent, emit, setup } from 'xstate';

/** Emitted when an instance actor has ended or crashed: its id may be used again. */
type TemplateEmission = { readonly type: 'instance.ended'; readonly actorId: string };

export type TemplateActor = ActorRefFrom<typeof templateMachine>;

export const templateMachine = setup({
  types: { events: {} as DoneActorEvent | ErrorActorEvent, emitted: {} as TemplateEmission },
  actions: { report: emit(({ event: { actorId } }) => ({ type: 'instance.ended', actorId })) },
}).createMachine({
  id: 'template',
  initial: 'supervising',
  states: {
    supervising: {
      on: {
        'xstate.done.actor.*': { actions: 'report' },
        'xstate.error.actor.*': { actions: 'report' },
      },
    },
  },
});

// The root of one gateway's actors: spawns a supervisor per template and outlives their crashes. Two gateways in one
// process have two roots and do not see each other.
//
//   running ── template.open ──► (spawns)      xstate.error ──► (stops and forgets the child)

import { type ErrorActorEvent, setup, spawnChild, stopChild } from 'xstate';
import { templateMachine } from './template.machine.ts';

export type RootEvent = { readonly type: 'template.open'; readonly template: string } | ErrorActorEvent;

export const rootMachine = setup({
  types: { events: {} as RootEvent },
  actors: { template: templateMachine },
}).createMachine({
  id: 'root',
  initial: 'running',
  states: {
    running: {
      on: {
        'template.open': { actions: spawnChild('template', { id: ({ event }) => event.template }) },
        'xstate.error.actor.*': { actions: stopChild(({ event }) => event.actorId) },
      },
    },
  },
});

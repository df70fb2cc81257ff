// The supervisor of a template spawns its instance actors, releases them when they are done, and survives their crashes. There is
// one per template, because spawning thousands of actors under one parent is quadratic. The root of a gateway spawns the
// supervisors; two gateways in one process have separate roots. The actors of client sessions have the root as parent but are not
// among its children: their owners end them.
//
//   template   supervising ── instance.add ──► (spawns)     xstate.done / xstate.error ──► (stops and forgets the child)
//   root       running ── template.open ──► (spawns)        xstate.error ──► an uncaught error, because nothing could replace a
//              supervisor or the actor of a client

import {
  type ActorRefFrom,
  type DoneActorEvent,
  type ErrorActorEvent,
  enqueueActions,
  setup,
  spawnChild,
} from 'xstate';
import { instanceMachine } from './instances/instance.machine.ts';
import type { InstanceActorInput } from './instances/instance-setup.ts';

type TemplateEvent =
  | { readonly type: 'instance.add'; readonly actorId: string; readonly input: InstanceActorInput }
  | DoneActorEvent
  | ErrorActorEvent;

/** The actor ended or crashed, and its id may be used again. */
type TemplateEmission = { readonly type: 'instance.ended'; readonly actorId: string };

export type TemplateActor = ActorRefFrom<typeof templateMachine>;

const templateMachine = setup({
  types: { events: {} as TemplateEvent, emitted: {} as TemplateEmission },
  actors: { instance: instanceMachine },
  actions: {
    release: enqueueActions(({ event: { actorId }, enqueue }) => {
      enqueue.stopChild(actorId);
      enqueue.emit({ type: 'instance.ended', actorId });
    }),
  },
}).createMachine({
  id: 'template',
  initial: 'supervising',
  states: {
    supervising: {
      on: {
        'instance.add': {
          actions: enqueueActions(({ event, enqueue }) => {
            enqueue.spawnChild('instance', { id: event.actorId, input: event.input });
          }),
        },
        'xstate.done.actor.*': { actions: 'release' },
        'xstate.error.actor.*': { actions: 'release' },
      },
    },
  },
});

type RootEvent = { readonly type: 'template.open'; readonly template: string } | ErrorActorEvent;

/** The id of the actors of client sessions, which no template can have. The same for all, like ACTOR_ID in conversation.ts. */
export const SESSION_ACTOR_ID = 'client session';

export const rootMachine = setup({
  types: { events: {} as RootEvent },
  actors: { template: templateMachine },
  actions: {
    throwUncaught: ({ event }) =>
      queueMicrotask(() => {
        throw 'error' in event ? event.error : event;
      }),
  },
}).createMachine({
  id: 'root',
  initial: 'running',
  states: {
    running: {
      on: {
        'template.open': { actions: spawnChild('template', { id: ({ event }) => event.template }) },
        'xstate.error.actor.*': { actions: 'throwUncaught' },
      },
    },
  },
});

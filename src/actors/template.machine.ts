// The supervisors. Of one template: spawns its instance actors, lets them go when they are done, and outlives their crashes. One per
// template, because spawning thousands under one parent is quadratic. The root of one gateway spawns those and outlives their
// crashes; two gateways in one process have two roots and do not see each other. Sessions and parked calls of clients have the
// root as their parent, and are not among its children: their owners end them.
//
//   template   supervising ── instance.add ──► (spawns)     xstate.done / xstate.error ──► (stops and forgets the child)
//   root       running ── template.open ──► (spawns)        xstate.error ──► (stops and forgets the child)
//              a client's actor broke ──► an uncaught error, because nothing could go on in its place

import {
  type ActorRefFrom,
  type DoneActorEvent,
  type ErrorActorEvent,
  emit,
  enqueueActions,
  setup,
  spawnChild,
  stopChild,
} from 'xstate';
import { instanceMachine } from './instances/instance.machine.ts';
import type { InstanceActorInput } from './instances/instance-setup.ts';

export type TemplateEvent =
  | { readonly type: 'instance.add'; readonly actorId: string; readonly input: InstanceActorInput }
  | DoneActorEvent
  | ErrorActorEvent;

/** The id may be used again. `crashed`: the actor broke by itself, a fault of ours, not of its backend. */
export type TemplateEmission =
  | { readonly type: 'instance.ended'; readonly actorId: string }
  | { readonly type: 'instance.crashed'; readonly actorId: string; readonly error: unknown };

export type TemplateActor = ActorRefFrom<typeof templateMachine>;

export const templateMachine = setup({
  types: { events: {} as TemplateEvent, emitted: {} as TemplateEmission },
  actors: { instance: instanceMachine },
  actions: {
    /** A machine that breaks leaves its children running. Closing the session answers its callers, ends its process. */
    closeSession: ({ event, self }) => {
      if (!('actorId' in event)) return;
      const crashed = self.getSnapshot().children[event.actorId]?.getSnapshot();
      crashed?.children.session?.send({ type: 'close' });
    },
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
        'xstate.done.actor.*': {
          actions: [
            stopChild(({ event }) => event.actorId),
            emit(({ event }) => ({ type: 'instance.ended' as const, actorId: event.actorId })),
          ],
        },
        'xstate.error.actor.*': {
          actions: [
            'closeSession',
            stopChild(({ event }) => event.actorId),
            emit(({ event }) => ({
              type: 'instance.crashed' as const,
              actorId: event.actorId,
              error: event.error,
            })),
          ],
        },
      },
    },
  },
});

type RootEvent = { readonly type: 'template.open'; readonly template: string } | ErrorActorEvent;

/**
 * Ids of the actors of clients, which no template can have. One for all of a kind: a machine keeps each type of event that it ever
 * met, and the end of an actor is an event with its id.
 */
export const CLIENT_ACTORS = { session: 'client session', parkedCall: 'parked call' } as const;

export const rootMachine = setup({
  types: { events: {} as RootEvent },
  actors: { template: templateMachine },
  guards: {
    isOfClient: ({ event }) =>
      'actorId' in event && Object.values<string>(CLIENT_ACTORS).includes(event.actorId),
  },
  actions: {
    surface: ({ event }) =>
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
        'xstate.error.actor.*': [
          { guard: 'isOfClient', actions: 'surface' },
          { actions: stopChild(({ event }) => event.actorId) },
        ],
      },
    },
  },
});

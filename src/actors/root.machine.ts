// The root of a gateway spawns the supervisors of its templates; two gateways in one process have separate roots. Actors of
// instances and of client sessions have a parent here but are not among its children, which are copied at each change: their
// owners start and end them, also when the root is stopped.
//
//   root       running ── template.open ──► (spawns)        template.close ──► (stops)
//              xstate.error ──► an uncaught error, because nothing could replace a supervisor or the actor of a client

import { randomUUID } from 'node:crypto';
import {
  type Actor,
  type AnyActorRef,
  createActor,
  type ErrorActorEvent,
  setup,
  spawnChild,
  stopChild,
} from 'xstate';
import type { ActorInspection } from '../domain/actor-inspection.ts';
import { type Clock, machineClock } from '../domain/time/clock.ts';
import { templateMachine } from './template.machine.ts';

export type RootActor = Actor<typeof rootMachine>;

type RootEvent =
  | { readonly type: 'template.open' | 'template.close'; readonly template: string }
  | ErrorActorEvent;

/**
 * The id of the actors of client sessions, which no template can have. It is the same for all of them, because a
 * machine keeps every event type that it has seen, and the end of an actor is an event with its id.
 */
export const SESSION_ACTOR_ID = 'client session';

const rootMachine = setup({
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
        'template.close': { actions: stopChild(({ event }) => event.template) },
        'xstate.error.actor.*': { actions: 'throwUncaught' },
      },
    },
  },
});

/** Starts the root of a gateway. `inspect` gets the events of all actors, and must not throw. */
export function startRoot(
  clock: Pick<Clock, 'alarm'>,
  inspect: ((event: ActorInspection) => void) | undefined,
): RootActor {
  const root = createActor(rootMachine, { clock: machineClock(clock), ...(inspect && { inspect }) });
  indexTimers(root.system);
  return root.start();
}

/**
 * Indexes timers by actor. When an actor ends, xstate looks for its timers among those of all actors, which is
 * quadratic for thousands of instances.
 */
function indexTimers({ scheduler }: AnyActorRef['system']): void {
  const { schedule } = scheduler;
  const idsOf = new WeakMap<AnyActorRef, Set<string>>();
  scheduler.schedule = (source, target, event, delay, id = randomUUID()) => {
    const ids = idsOf.get(source) ?? new Set();
    idsOf.set(source, ids.add(id)); // few: the delays of a machine have fixed ids
    schedule(source, target, event, delay, id);
  };
  scheduler.cancelAll = (actor) => {
    for (const id of idsOf.get(actor) ?? []) scheduler.cancel(actor, id);
  };
}

// The root of a gateway: the parent of the actors of instances and of client sessions, which share its clock and its
// inspection; two gateways in one process have separate roots. The actors are not among its children, which are copied at
// each change: their owners start and end them, also when the root is stopped.
//
//   root       running ── an instance actor has ended or crashed ──► (emits instance.ended)
//              xstate.error of another actor ──► an uncaught error, because nothing could replace the actor of a client

import { randomUUID } from 'node:crypto';
import {
  type Actor,
  type AnyActorRef,
  createActor,
  type DoneActorEvent,
  type ErrorActorEvent,
  emit,
  setup,
} from 'xstate';
import type { ActorInspection } from '../../domain/events/actor-inspection.ts';
import { type Clock, machineClock } from '../../domain/time/clock.ts';

export type RootActor = Actor<typeof rootMachine>;

/**
 * The id of the actors of client sessions. It is the same for all of them, because a machine keeps every event type
 * that it has seen, and the end of an actor is an event with its id.
 */
export const SESSION_ACTOR_ID = 'client session';

const rootMachine = setup({
  types: {
    events: {} as DoneActorEvent | ErrorActorEvent,
    /** Emitted when an instance actor has ended or crashed: its id may be used again. */
    emitted: {} as { readonly type: 'instance.ended'; readonly actorId: string },
  },
  actions: {
    report: emit(({ event: { actorId } }) => ({ type: 'instance.ended', actorId })),
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
        'xstate.done.actor.instance.*': { actions: 'report' },
        'xstate.error.actor.instance.*': { actions: 'report' },
        'xstate.error.actor.*': { actions: 'throwUncaught' },
      },
    },
  },
});

/** Starts the root of a gateway. `inspect` gets the events of all actors, and must not throw. */
export function startRoot(clock: Clock, inspect: ((event: ActorInspection) => void) | undefined): RootActor {
  const root = createActor(rootMachine, { clock: machineClock(clock), ...(inspect && { inspect }) });
  indexTimers(root.system);
  return root.start();
}

/** Makes the ids of the instance actors of a root. The id of an ended actor is used again: xstate keeps every id for ever. */
export function instanceActorIds(root: RootActor): () => string {
  const free: string[] = [];
  let count = 0;
  root.on('instance.ended', ({ actorId }) => free.push(actorId));
  const make = (): string => {
    count += 1;
    return `instance.${count}`;
  };
  return () => free.pop() ?? make();
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

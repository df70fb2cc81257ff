// Starts the actors of instances under the supervisor of their template. The fleet has the definitions, and restarts after crashes.

import { type Actor, type AnyActorRef, createActor } from 'xstate';
import type { ActorInspection } from '../domain/actor-inspection.ts';
import { type Clock, clockOf } from '../domain/clock.ts';
import { InstanceRef } from './instances/instance-ref.ts';
import type { InstanceActorInput } from './instances/instance-setup.ts';
import { rootMachine, type TemplateActor } from './template.machine.ts';

/** The timers of all actors, and the observer of their inspection. */
export interface ActorSystemOptions extends Pick<Clock, 'alarm'> {
  /** Gets the inspection events of all actors. It must not throw. Default: none. */
  readonly inspect?: ((event: ActorInspection) => void) | undefined;
}

export class InstanceSupervisor {
  readonly #root: Actor<typeof rootMachine>;
  /** The children of the root would not do: they are a plain object, in which a template cannot be named `constructor`. */
  readonly #supervisors = new Map<string, TemplateActor>();
  /** Ids of ended actors, which are reused: xstate keeps every id for ever. */
  readonly #freeIds: string[] = [];
  #ids = 0;

  constructor({ alarm, inspect }: ActorSystemOptions) {
    this.#root = createActor(rootMachine, { clock: clockOf(alarm), ...(inspect && { inspect }) });
    this.#root.start();
  }

  get root(): AnyActorRef {
    return this.#root;
  }

  start(input: InstanceActorInput): InstanceRef {
    const { template, id } = input.definition;
    const actorId = this.#freeIds.pop() ?? this.#newId();
    const supervisor = this.#supervisor(template);
    supervisor.send({ type: 'instance.add', actorId, input });
    const actor = supervisor.getSnapshot().children[actorId];
    if (actor === undefined) throw new Error(`the supervisor of ${template} did not start ${id}`);
    return new InstanceRef(actor);
  }

  /** Stops the root. All instances must have ended before. */
  stop(): void {
    this.#root.stop();
  }

  #newId(): string {
    this.#ids += 1;
    return `instance-${this.#ids}`;
  }

  #supervisor(template: string): TemplateActor {
    const known = this.#supervisors.get(template);
    if (known !== undefined) return known;
    this.#root.send({ type: 'template.open', template });
    const supervisor = this.#root.getSnapshot().children[template];
    if (supervisor === undefined) throw new Error(`the root did not start a supervisor for ${template}`);
    this.#supervisors.set(template, supervisor);
    supervisor.on('instance.ended', ({ actorId }) => this.#freeIds.push(actorId));
    return supervisor;
  }
}

// Starts the actors of instances under the supervisor of their template, and reports crashes. An instance opens its transports one
// after another, the first when its predecessors on the endpoint are gone. The fleet has the definitions, and restarts after crashes.

import { once } from 'node:events';
import { firstValueFrom, from, race, timer } from 'rxjs';
import { type Actor, type ActorOptions, type AnyActorRef, createActor, type InspectionEvent } from 'xstate';
import { openingCancelled } from '../domain/error-catalogue.ts';
import type { InstanceDefinition } from '../domain/instance.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Open } from '../transports/opening.ts';
import type { Transport } from '../transports/transport.ts';
import { InstanceRef } from './instances/instance-ref.ts';
import type { InstanceActorInput } from './instances/instance-setup.ts';
import { rootMachine, type TemplateActor } from './template.machine.ts';

/** An instance actor that was started and has not ended. */
export interface Running {
  readonly ref: InstanceRef;
  readonly openings: Openings;
}

/** The clock of all actors, and the observer of their inspection. */
export interface ActorSystemOptions {
  /** Default: the global timers. */
  readonly clock?: ActorOptions<typeof rootMachine>['clock'];
  /** Gets the inspection events of all actors. It must not throw. Default: none. */
  readonly inspect?: ((event: InspectionEvent) => void) | undefined;
}

export class InstanceSupervisor {
  readonly #root: Actor<typeof rootMachine>;
  readonly #onCrash: (running: Running, error: unknown) => void;
  /** The children of the root would not do: they are a plain object, in which a template cannot be named `constructor`. */
  readonly #supervisors = new Map<string, TemplateActor>();
  readonly #running = new Map<string, Running>();
  /** Ids of ended actors, which are reused: xstate keeps every id for ever. */
  readonly #freeIds: string[] = [];
  #ids = 0;

  /** `onCrash` is called for an actor that crashed through a fault of the gateway; its backend still runs. */
  constructor(onCrash: (running: Running, error: unknown) => void, options: ActorSystemOptions = {}) {
    const { clock, inspect } = options;
    this.#onCrash = onCrash;
    this.#root = createActor(rootMachine, {
      ...(clock && { clock }),
      ...(inspect && { inspect }),
    });
    this.#root.start();
  }

  get root(): AnyActorRef {
    return this.#root;
  }

  /** Starts an instance. `before`: see Openings. */
  start(input: InstanceActorInput, before: Promise<unknown> | undefined): InstanceRef {
    const { template, id } = input.definition;
    const actorId = this.#freeId();
    const supervisor = this.#supervisor(template);
    const openings = new Openings(input.open, before);
    supervisor.send({ type: 'instance.add', actorId, input: { ...input, open: openings.open } });
    const actor = supervisor.getSnapshot().children[actorId];
    if (actor === undefined) throw new Error(`the supervisor of ${template} did not start ${id}`);
    const ref = new InstanceRef(actor, input.now);
    this.#running.set(actorId, { ref, openings });
    return ref;
  }

  /** Stops the root. All instances must have ended before. */
  stop(): void {
    this.#root.stop();
  }

  #freeId(): string {
    const used = this.#freeIds.pop();
    if (used !== undefined) return used;
    this.#ids += 1;
    return `instance-${this.#ids}`;
  }

  #release(actorId: string): void {
    this.#running.delete(actorId);
    this.#freeIds.push(actorId);
  }

  #supervisor(template: string): TemplateActor {
    const known = this.#supervisors.get(template);
    if (known !== undefined) return known;
    this.#root.send({ type: 'template.open', template });
    const supervisor = this.#root.getSnapshot().children[template];
    if (supervisor === undefined) throw new Error(`the root did not start a supervisor for ${template}`);
    this.#supervisors.set(template, supervisor);
    supervisor.on('instance.ended', ({ actorId }) => this.#release(actorId));
    supervisor.on('instance.crashed', ({ actorId, error }) => {
      const running = this.#running.get(actorId);
      this.#release(actorId);
      if (running !== undefined) this.#onCrash(running, error);
    });
    return supervisor;
  }
}

class Openings {
  readonly #open: Open;
  readonly #before: Promise<unknown> | undefined;
  /** The first definition, because transports keep state by its identity. A changed one differs in weight or metadata only. */
  #definition: InstanceDefinition | undefined;
  #latest: Promise<Transport> | undefined;

  /** `before`: the end of the predecessors, which must resolve. */
  constructor(open: Open, before?: Promise<unknown>) {
    this.#open = open;
    this.#before = before;
  }

  /** Errors of the given `open`; BACKEND_UNAVAILABLE when it is aborted before. */
  readonly open: Open = (present, ...args) => {
    this.#definition ??= present;
    this.#latest =
      this.#before === undefined
        ? this.#open(this.#definition, ...args)
        : this.#openAfter(this.#before, this.#definition, ...args);
    return this.#latest;
  };

  /** Closes the latest transport. Resolves when it is gone, at the latest after LIMITS.drainMs; never rejects. */
  async close(): Promise<void> {
    // If it was not opened, or cannot be closed, nothing more can be done.
    const closed = this.#latest?.then((transport) => transport.close()).catch(() => undefined);
    await firstValueFrom(race(from(Promise.resolve(closed)), timer(LIMITS.drainMs)));
  }

  async #openAfter(
    before: Promise<unknown>,
    ...[definition, signal, opener]: Parameters<Open>
  ): Promise<Transport> {
    await Promise.race([before, once(signal, 'abort')]);
    if (signal.aborted) throw openingCancelled();
    return this.#open(definition, signal, opener);
  }
}

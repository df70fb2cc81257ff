// All instances of a gateway, by template: spawns their actors, feeds each template's pool, tells what happens to them.
// It starts no call (dispatcher.ts) and stores nothing (registry.ts does).

import { filter, firstValueFrom } from 'rxjs';
import { type Actor, createActor } from 'xstate';
import { bestLatencyMs, healthScore } from '../balancing/health-score.ts';
import { serverNotFound, shuttingDown, templateNotFound } from '../domain/errors.ts';
import type { GatewayEvent } from '../domain/events.ts';
import { reasonOf } from '../domain/failures.ts';
import type { InstanceDefinition, InstanceSnapshot } from '../domain/instance.ts';
import { LIMITS } from '../domain/limits.ts';
import type { BalancerPolicy } from '../domain/policy.ts';
import { Group } from './group.ts';
import { emissionFact, factOf, stateFact } from './instance-facts.ts';
import { InstanceRef } from './instance-ref.ts';
import type { InstanceInput } from './instance-setup.ts';
import { Openings } from './openings.ts';
import { rootMachine } from './root.machine.ts';
import type { TemplateActor } from './template.machine.ts';

/** What the fleet gets from outside: how to open a transport, time, randomness, and who hears its facts. */
export interface FleetOptions extends Pick<InstanceInput, 'open' | 'now' | 'random'> {
  readonly emit: (event: GatewayEvent) => void;
  /** Rings once after so many ms, unless the returned function was called before. */
  readonly alarm: (waitMs: number, ring: () => void) => () => void;
}

/** An instance actor that was started and has not ended. */
interface Running {
  readonly ref: InstanceRef;
  readonly openings: Openings;
}

/** An instance as it was registered and as it is now. */
export interface InstanceView {
  readonly definition: InstanceDefinition;
  readonly snapshot: InstanceSnapshot;
}

export class Fleet {
  readonly #options: FleetOptions;
  readonly #root: Actor<typeof rootMachine>;
  readonly #groups = new Map<string, Group>();
  readonly #members = new Map<string, Map<string, InstanceRef>>();
  readonly #byServerId = new Map<string, InstanceRef>();
  /** Those that were taken out and have calls or a process left, with the promise of their end. */
  readonly #leaving = new Map<InstanceRef, Promise<void>>();
  /** Those whose actor broke and whose backend is not gone yet, with the promise of its end. */
  readonly #crashed = new Map<InstanceRef, Promise<void>>();
  /** What calls off each start that is due after a crash. */
  readonly #respawns = new Set<() => void>();
  readonly #running = new Map<string, Running>();
  /** Ids of actors that ended, to be used again: xstate remembers every id it met for ever. */
  readonly #freeIds: string[] = [];
  #ids = 0;
  #isClosing = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#root = createActor(rootMachine);
    this.#root.start();
  }

  /** Names of the templates that have a group, sorted. */
  get templates(): string[] {
    return [...this.#groups.keys()].sort();
  }

  has(template: string): boolean {
    return this.#groups.has(template);
  }

  /** TEMPLATE_NOT_FOUND when nothing was ever registered or set under the name. */
  group(template: string): Group {
    const group = this.#groups.get(template);
    if (group === undefined) throw templateNotFound(template);
    return group;
  }

  /** Makes sure the template has a group, and that it follows `policy`. */
  govern(template: string, policy: BalancerPolicy): void {
    const group = this.#groups.get(template);
    if (group === undefined) {
      this.#groups.set(template, new Group(template, policy, this.#options.random));
      this.#members.set(template, new Map());
      this.#supervise(template);
      return;
    }
    group.govern(policy);
    for (const ref of this.refs(template)) ref.govern(policy);
  }

  /**
   * Starts an instance. One with the same id leaves behind it: its running calls may finish. SHUTTING_DOWN once the
   * fleet closes: nobody would stop what is started then.
   */
  add(definition: InstanceDefinition): InstanceRef {
    if (this.#isClosing) throw shuttingDown();
    const { template, id } = definition;
    const group = this.group(template);
    if (this.#membersOf(template).has(id)) this.#dismiss(template, id, LIMITS.drainMs);
    const actorId = this.#freeId();
    const supervisor = this.#supervisor(template);
    const { emit, now, random } = this.#options;
    const openings = new Openings(this.#options.open, this.#predecessors(definition));
    supervisor.send({
      type: 'instance.add',
      actorId,
      input: { definition, policy: group.policy, open: openings.open, now, random },
    });
    const actor = supervisor.getSnapshot().children[actorId];
    if (actor === undefined) throw new Error(`the supervisor of ${template} did not start ${id}`);
    const ref = new InstanceRef(actor, now);
    this.#running.set(actorId, { ref, openings });
    this.#membersOf(template).set(id, ref);
    this.#byServerId.set(ref.serverId, ref);
    ref.onEmission((emission) => this.#hasSuccessor(ref) || emit(emissionFact(ref, emission)));
    ref.state$.subscribe((state) => {
      group.observe(ref, state);
      if (!this.#hasSuccessor(ref)) emit(stateFact(ref, state));
    });
    return ref;
  }

  /** Takes an instance out at once; resolves when it has ended. */
  remove(template: string, id: string, withinMs: number): Promise<void> {
    this.get(template, id);
    return this.#dismiss(template, id, withinMs);
  }

  find(template: string, id: string): InstanceRef | undefined {
    return this.#members.get(template)?.get(id);
  }

  /** TEMPLATE_NOT_FOUND or SERVER_NOT_FOUND. */
  get(template: string, id: string): InstanceRef {
    this.group(template);
    const ref = this.find(template, id);
    if (ref === undefined) throw serverNotFound(id);
    return ref;
  }

  /** SERVER_NOT_FOUND. */
  byServerId(serverId: string): InstanceRef {
    const ref = this.#byServerId.get(serverId);
    if (ref === undefined) throw serverNotFound(serverId);
    return ref;
  }

  isServerIdTaken(serverId: string): boolean {
    return this.#byServerId.has(serverId);
  }

  /** Instances of one template, in the order of their registration. */
  refs(template: string): InstanceRef[] {
    return [...this.#membersOf(template).values()];
  }

  /** Every instance, template by template. */
  all(): InstanceRef[] {
    return this.templates.flatMap((template) => this.refs(template));
  }

  /** Exchanges under way now, those of instances that leave included. */
  get inFlight(): number {
    return [...this.all(), ...this.#leaving.keys()].reduce((sum, ref) => sum + ref.inFlight, 0);
  }

  snapshot(ref: InstanceRef): InstanceSnapshot {
    return snapshotOf(ref, bestLatencyMs(this.group(ref.template).pool.candidates));
  }

  /** Every instance of a template, in the order of their registration. TEMPLATE_NOT_FOUND. */
  views(template: string): InstanceView[] {
    const bestMs = bestLatencyMs(this.group(template).pool.candidates);
    return this.refs(template).map((ref) => ({
      definition: ref.definition,
      snapshot: snapshotOf(ref, bestMs),
    }));
  }

  /** Empties the pools, lets calls in flight finish within the grace, ends every instance and then the root. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    for (const callOff of this.#respawns) callOff();
    for (const ref of this.#leaving.keys()) ref.leave(graceMs); // who leaves already has no more time than the others
    for (const { template, id } of this.all()) void this.#dismiss(template, id, graceMs);
    await Promise.all([...this.#leaving.values(), ...this.#crashed.values()]);
    for (const group of this.#groups.values()) group.close();
    this.#root.stop();
  }

  #dismiss(template: string, id: string, withinMs: number): Promise<void> {
    const ref = this.find(template, id);
    if (ref === undefined) return Promise.resolve();
    this.#membersOf(template).delete(id);
    this.#byServerId.delete(ref.serverId);
    const ended = firstValueFrom(ref.state$.pipe(filter((state) => state === 'stopped'))).then(() => {
      this.#leaving.delete(ref);
    });
    this.#leaving.set(ref, ended);
    ref.leave(withinMs);
    return ended;
  }

  /** The end of those that still hold the endpoint which a program of the gateway's own is to serve. */
  #predecessors({ endpoint, command }: InstanceDefinition): Promise<unknown> | undefined {
    if (endpoint === undefined || command === undefined) return undefined;
    const ends = [...this.#leaving, ...this.#crashed]
      .filter(([{ definition }]) => definition.endpoint === endpoint && definition.command !== undefined)
      .map(([, end]) => end);
    return ends.length === 0 ? undefined : Promise.all(ends);
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

  #membersOf(template: string): Map<string, InstanceRef> {
    const members = this.#members.get(template);
    if (members === undefined) throw templateNotFound(template);
    return members;
  }

  #supervisor(template: string): TemplateActor {
    const supervisor = this.#root.getSnapshot().children[template];
    if (supervisor === undefined) return this.#supervise(template);
    return supervisor;
  }

  #supervise(template: string): TemplateActor {
    this.#root.send({ type: 'template.open', template });
    const supervisor = this.#root.getSnapshot().children[template];
    if (supervisor === undefined) throw new Error(`the root did not start a supervisor for ${template}`);
    supervisor.on('instance.ended', ({ actorId }) => this.#release(actorId));
    supervisor.on('instance.crashed', ({ actorId, error }) => {
      const running = this.#running.get(actorId);
      this.#release(actorId);
      if (running !== undefined) this.#afterCrash(running, error);
    });
    return supervisor;
  }

  /** An actor broke through a fault of ours: the instance starts anew, unless it was replaced meanwhile. */
  #afterCrash({ ref, openings }: Running, error: unknown): void {
    const { template, id } = ref;
    this.#options.emit({ type: 'instance.crashed', ...factOf(ref), reason: reasonOf(error) });
    this.#crashed.set(
      ref,
      openings.close().then(() => {
        this.#crashed.delete(ref);
      }),
    );
    const callOff = this.#options.alarm(LIMITS.restartFirstMs, () => {
      this.#respawns.delete(callOff);
      if (this.find(template, id) !== ref) return;
      this.#membersOf(template).delete(id);
      this.add(ref.definition);
    });
    this.#respawns.add(callOff);
  }

  /** Its successor is told about under the same id. */
  #hasSuccessor(ref: InstanceRef): boolean {
    const holder = this.find(ref.template, ref.id);
    return holder !== undefined && holder !== ref;
  }
}

function snapshotOf(ref: InstanceRef, bestMs: number | undefined): InstanceSnapshot {
  return ref.snapshot(Math.round(healthScore(ref, bestMs) * 10) / 10);
}

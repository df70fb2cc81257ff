// All instances of a gateway, by template and by server id. Spawns their actors, feeds the pool of each template, and
// emits their events. Instances of other nodes without a connection are only listed. Its templates are in
// template-groups.ts. It makes no calls (dispatcher.ts) and stores nothing (registry.ts).

import { firstValueFrom, Subject } from 'rxjs';
import { createActor } from 'xstate';
import { reasonOf } from '../../domain/errors/errors.ts';
import { shuttingDown } from '../../domain/errors/gateway-errors.ts';
import type { ActorInspection } from '../../domain/events/actor-inspection.ts';
import { eventOf, type GatewayEvent } from '../../domain/events/events.ts';
import type { InstanceDefinition, InstanceState } from '../../domain/instances/instance.ts';
import { hasProcesses } from '../../domain/instances/transport-kinds.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ListChange } from '../../domain/mcp/mcp.ts';
import type { UserShares } from '../../domain/memory/user-shares.ts';
import { backOffMs, RESTART_FORGIVEN_MS } from '../../domain/time/back-off.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { Open } from '../../transports/open-options.ts';
import { EndingInstances } from '../instances/ending-instances.ts';
import { instanceMachine } from '../instances/instance.machine.ts';
import { InstanceRef } from '../instances/instance-ref.ts';
import type { InstanceActorInput, InstanceEmission } from '../instances/instance-setup.ts';
import type { ToolRules } from '../instances/tool-cache.ts';
import type { TrustOf } from '../instances/tool-trust.ts';
import { UnreachableInstance } from '../instances/unreachable-instance.ts';
import { instanceActorIds, type RootActor, startRoot } from './root.machine.ts';
import type { Instance } from './template-group.ts';
import { TemplateGroups } from './template-groups.ts';

interface FleetOptions
  extends Omit<InstanceActorInput, 'definition' | 'policy' | 'toolRules' | 'open' | 'isElsewhere'> {
  /** Counts the memory of tool lists, by server id. */
  readonly toolLists: UserShares;
  readonly trustOf: TrustOf;
  readonly openTransport: (definition: InstanceDefinition) => Open;
  /**
   * How to open an instance that another node runs; undefined when it cannot be reached. Default: such
   * instances are only listed.
   */
  readonly openElsewhere?: ((definition: InstanceDefinition) => Open | undefined) | undefined;
  /** Spreads the ends of thousands of instances over several turns of the event loop. */
  readonly scheduler: TaskScheduler;
  /** Gets the inspection events of all actors. It must not throw. Default: none. */
  readonly inspect?: ((event: ActorInspection) => void) | undefined;
}

/**
 * The restart of an instance after crashes: how often its actor crashed since it last ran for
 * RESTART_FORGIVEN_MS, and when it was restarted.
 */
interface Restarted {
  readonly crashes: number;
  readonly atMs: number;
}

/** All instances of a gateway, and its templates. */
export class Fleet {
  readonly #options: FleetOptions;
  /** The parent of all actors. */
  readonly root: RootActor;
  readonly templates: TemplateGroups;
  readonly #byServerId = new Map<string, Instance>();
  readonly #ending = new EndingInstances();
  /**
   * Emits lists that changed; `resources` includes resource templates. Hot, no replay. The creator of the fleet
   * completes it after `close`.
   */
  readonly listChanged$ = new Subject<ListChange>();
  /** Emits each new instance: one that runs here, or one of another node that can be reached. Hot, no replay. */
  readonly added$ = new Subject<InstanceRef>();
  readonly #nextActorId: () => string;
  #isClosing = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    const isClosing = () => this.#isClosing;
    const toolsChanged = (template: string) => this.listChanged$.next({ template, list: 'tools' });
    this.templates = new TemplateGroups(options, isClosing, toolsChanged);
    this.root = startRoot(options.clock, options.inspect);
    this.root.subscribe({ complete: () => this.#stopped() });
    this.#nextActorId = instanceActorIds(this.root);
  }

  /**
   * Starts an instance; an earlier one with the same id leaves. Throws SHUTTING_DOWN once the fleet closes, since
   * nothing would stop the instance.
   */
  add(definition: InstanceDefinition, restarted?: Restarted): InstanceRef {
    const open = () => this.#ending.opensAfter(definition, this.#options.openTransport(definition));
    return this.#add(definition, open, false, restarted);
  }

  /** `openOf` is called when an earlier instance with the same id is leaving. */
  #add(
    definition: InstanceDefinition,
    openOf: () => Open,
    isElsewhere: boolean,
    restarted?: Restarted,
  ): InstanceRef {
    if (this.#isClosing) throw shuttingDown();
    const { template, id, serverId } = definition;
    const { trustOf, toolLists } = this.#options;
    const group = this.templates.group(template);
    this.#removePredecessor(template, id);
    const toolRules: ToolRules = {
      trust: () => trustOf(template),
      hints: () => group.policy.annotate,
      count: (bytes) => {
        if (bytes > 0) return toolLists.take(serverId, bytes);
        toolLists.add(serverId, bytes);
        return true;
      },
    };
    const own = { definition, policy: group.policy, toolRules, open: openOf(), isElsewhere };
    const ref = this.#start({ ...this.#options, ...own });
    this.#list(ref);
    ref.onEmission((emission) => this.#emitEmission(ref, emission));
    let last: InstanceState | undefined;
    ref.watch((state) => {
      group.observe(ref, state);
      const isNew = state !== last;
      last = state;
      if (!isNew || this.#hasSuccessor(ref)) return;
      this.#options.emit(stateEvent(this.#options.clock, ref, state));
      this.#checkLists(template, id);
    });
    // After `watch`: a crashed instance has left the pool when its calls are repeated.
    ref.onCrash((error) => this.#afterCrash(ref, error, restarted));
    this.added$.next(ref);
    return ref;
  }

  /**
   * Adds an instance that does not run here: with a connection to the node that runs it, or only to the list, with
   * this reason.
   */
  addElsewhere(definition: InstanceDefinition, reason?: () => string, restarted?: Restarted): Instance {
    const open = definition.locked === undefined ? this.#options.openElsewhere?.(definition) : undefined;
    if (open === undefined) return this.addUnreachable(definition, reason);
    return this.#add(definition, () => open, true, restarted);
  }

  /** Lists an instance that cannot be reached from here; `reason` says why. An earlier one with the same id leaves. */
  addUnreachable(definition: InstanceDefinition, reason?: () => string): UnreachableInstance {
    if (this.#isClosing) throw shuttingDown();
    const { template, id } = definition;
    const ranHere = this.find(template, id) instanceof InstanceRef;
    this.#removePredecessor(template, id);
    const unreachable = new UnreachableInstance(definition, reason);
    this.#list(unreachable);
    if (ranHere)
      this.#options.emit({ type: 'instance.stopped', ...eventOf(this.#options.clock, unreachable) });
    return unreachable;
  }

  /** Removes an instance. Resolves when it has ended on this node. Throws TEMPLATE_NOT_FOUND or SERVER_NOT_FOUND. */
  remove(template: string, id: string, withinMs: number): Promise<void> {
    const ended = this.#remove(this.templates.group(template).instance(id), withinMs);
    this.#checkLists(template, id);
    return ended;
  }

  find(template: string, id: string): Instance | undefined {
    return this.templates.find(template)?.byId.get(id);
  }

  findByServerId(serverId: string): Instance | undefined {
    return this.#byServerId.get(serverId);
  }

  /** The number of listed instances, including those of other nodes. */
  get size(): number {
    return this.#byServerId.size;
  }

  /** All instances that this node runs, template by template. */
  ownRefs(): InstanceRef[] {
    return this.#refs.filter((ref) => !ref.isElsewhere);
  }

  /** The number of programs that run here, without dedicated processes, and of exchanges under way. */
  get activity(): { readonly programs: number; readonly calls: number } {
    const programs = this.ownRefs().filter(
      ({ definition, state }) => hasProcesses(definition) && state !== 'stopped',
    );
    return { programs: programs.length, calls: this.underWay };
  }

  /** The number of exchanges under way, including those of instances that leave. */
  get underWay(): number {
    return [...this.#refs, ...this.#ending.refs].reduce((sum, ref) => sum + ref.calls.underWay, 0);
  }

  /** The instances that calls reach from here, template by template. */
  get #refs(): InstanceRef[] {
    return this.templates.names.flatMap((template) => this.templates.group(template).refs);
  }

  /** Empties the pools, lets calls in flight finish within `graceMs`, ends every instance and then the root. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    const { scheduler } = this.#options;
    const instances = this.templates.instances();
    await scheduler.each(this.#ending.refs, (ref) => ref.leave(graceMs)); // they get no more time than others
    await scheduler.each(instances, (instance) => void this.#remove(instance, graceMs));
    await this.#ending.untilEnded();
    await scheduler.each(this.templates.groups, (group) => group.close());
    this.root.stop();
  }

  #start(input: InstanceActorInput): InstanceRef {
    const id = this.#nextActorId();
    return new InstanceRef(createActor(instanceMachine, { id, parent: this.root, input }).start());
  }

  /** The root was stopped: ends the remaining instances at once. */
  #stopped(): void {
    const refs = this.templates.groups.flatMap((group) => group.refs);
    for (const instance of [...refs, ...this.#ending.refs]) instance.leave(0);
  }

  #emitEmission(ref: InstanceRef, emission: InstanceEmission): void {
    if (this.#hasSuccessor(ref)) return;
    const fields = eventOf(this.#options.clock, ref);
    if (emission.type === 'tool.withheld')
      this.#options.emit({ ...emission, ...fields, alias: 'tool.omitted' });
    else if (emission.type !== 'list.changed') this.#options.emit({ ...emission, ...fields });
    else {
      if (emission.list === 'tools') this.#options.emit({ type: 'tools.changed', ...fields });
      this.listChanged$.next({ template: ref.template, list: emission.list });
    }
  }

  #checkLists(template: string, id: string): void {
    for (const list of this.templates.group(template).capabilities.check(id))
      this.listChanged$.next({ template, list });
  }

  /** Adds an instance as the last of its template. One with the same id must be removed first. */
  #list(instance: Instance): void {
    this.templates.group(instance.template).byId.set(instance.id, instance);
    this.#byServerId.set(instance.serverId, instance);
  }

  #unlist(instance: Instance): void {
    this.templates.group(instance.template).byId.delete(instance.id);
    // The server id may belong to another instance by now: two nodes may have swapped two instances.
    if (this.#byServerId.get(instance.serverId) === instance) this.#byServerId.delete(instance.serverId);
  }

  #removePredecessor(template: string, id: string): void {
    const predecessor = this.find(template, id);
    if (predecessor !== undefined) void this.#remove(predecessor, LIMITS.drainMs);
  }

  #remove(instance: Instance, withinMs: number): Promise<void> {
    this.#unlist(instance);
    if (!(instance instanceof InstanceRef)) return Promise.resolve();
    const stopped = firstValueFrom(instance.until$(() => instance.state === 'stopped'));
    const ended = this.#track(instance, stopped);
    instance.leave(withinMs);
    return ended;
  }

  /**
   * Starts an instance again, where it ran, after its actor crashed through a fault of the gateway: with a back-off, unless it
   * is replaced meanwhile. One that was drained here is drained again.
   */
  #afterCrash(ref: InstanceRef, error: unknown, restarted: Restarted = { crashes: 0, atMs: 0 }): void {
    const { template, id } = ref;
    const { random, clock } = this.#options;
    const isForgiven = restarted.crashes > 0 && clock.now() - restarted.atMs >= RESTART_FORGIVEN_MS;
    const crashes = isForgiven ? 1 : restarted.crashes + 1;
    this.#options.emit({
      type: 'instance.crashed',
      ...eventOf(this.#options.clock, ref),
      reason: reasonOf(error),
    });
    const { isDrained } = ref;
    void this.#track(ref, ref.endAfterCrash());
    this.#options.clock.alarm(backOffMs(crashes, LIMITS.restartLongestMs, random()), () => {
      if (this.#isClosing || this.find(template, id) !== ref) return;
      this.#unlist(ref);
      const again = { crashes, atMs: clock.now() };
      if (ref.isElsewhere) this.addElsewhere(ref.definition, undefined, again);
      else {
        const successor = this.add(ref.definition, again);
        if (isDrained) successor.drain();
      }
    });
  }

  /** Resolves at the end of an instance that was removed or has crashed. Its group is in use until then. */
  #track(ref: InstanceRef, end: Promise<unknown>): Promise<void> {
    const group = this.templates.acquire(ref.template);
    return this.#ending.add(ref, end, () => this.templates.release(group));
  }

  /** True when another instance has the same id: events with that id are then about the other one. */
  #hasSuccessor(ref: InstanceRef): boolean {
    const present = this.find(ref.template, ref.id);
    return present !== undefined && present !== ref;
  }
}

function stateEvent(clock: Clock, ref: InstanceRef, state: InstanceState): GatewayEvent {
  const fields = eventOf(clock, ref);
  if (state === 'healthy')
    return { type: 'instance.healthy', ...fields, era: ref.handshake?.era ?? 'unknown' };
  if (state === 'unhealthy') {
    const { reason, isPlannedEnd: isPlanned } = ref;
    return { type: 'instance.unhealthy', ...fields, reason: reason ?? 'unknown', isPlanned };
  }
  return { type: `instance.${state}`, ...fields };
}

// Runs the programs that any node may run, as the cluster decides: an instance of one is started when this node
// has its lease, and is listed as one of another node otherwise. Source: ADR 168.

import { filter, firstValueFrom, merge, type Observable, of, Subject, take } from 'rxjs';
import type { Fleet } from '../actors/fleet/fleet.ts';
import type { Instance } from '../actors/fleet/template-group.ts';
import { InstanceRef } from '../actors/instances/instance-ref.ts';
import type { InstanceDefinition, InstanceState } from '../domain/instances/instance.ts';
import {
  type NodeLife,
  type ProgramHost,
  type ProgramListener,
  runsAnywhere,
} from '../domain/nodes/nodes.ts';
import type { LeaseReaper } from '../programs/lease-reaper.ts';

/** Knows where each program that any node may run is running, and starts and ends the programs whose lease this node has. */
export class LeasedPrograms implements ProgramHost {
  readonly #fleet: Fleet;
  readonly #reaper: LeaseReaper;
  readonly #nodeId: string | undefined;
  /** The listeners of the programs whose lease this node has. */
  readonly #listeners = new Map<string, ProgramListener>();
  /** The instances that run here, or are being stopped. */
  readonly #refs = new Map<string, Set<InstanceRef>>();
  readonly #locations = new Map<
    string,
    { readonly where: NodeLife | undefined; readonly why: string | undefined }
  >();
  /** The programs whose last start this node refused. */
  readonly #refused = new Set<string>();
  /** Hot: programs that a node runs from now on. */
  readonly #placed$ = new Subject<string>();
  #onChanged = (): void => {};
  #isClosed = false;

  constructor(fleet: Fleet, reaper: LeaseReaper, nodeId: string | undefined) {
    this.#fleet = fleet;
    this.#reaper = reaper;
    this.#nodeId = nodeId;
    fleet.added$.subscribe((ref) => {
      if (runsAnywhere(ref.definition) && !ref.isElsewhere) this.#follow(ref);
    });
  }

  /** Whether this node has the lease. */
  runsHere({ serverId }: InstanceDefinition): boolean {
    return this.#listeners.has(serverId);
  }

  /** Notes that this node must not start this instance: a rule of the node or of the template, not a failure. */
  refused(serverId: string): void {
    if (this.#listeners.has(serverId)) this.#refused.add(serverId);
  }

  /** The reason why an instance does not run here, as a clause. */
  reasonOf(serverId: string): string {
    const { where, why } = this.#locations.get(serverId) ?? {};
    const runs = where === undefined ? 'no node runs it yet' : `it runs on the node "${where.node}"`;
    return why === undefined ? runs : `${runs}; ${why}`;
  }

  /** The node that runs it; undefined: none, or that is not known. */
  nodeOf(serverId: string): string | undefined {
    return this.#locations.get(serverId)?.where?.node;
  }

  /** Emits once when it runs here, or on another node; at once if it does. */
  placed(serverId: string): Observable<unknown> {
    const isPlaced = () => {
      const node = this.nodeOf(serverId);
      return this.#listeners.has(serverId) || (node !== undefined && node !== this.#nodeId);
    };
    return merge(of(serverId), this.#placed$).pipe(filter(isPlaced), take(1));
  }

  /** Registered programs, as they are here at each moment: their state is `starting` until this node or another one runs them. */
  opening(): { readonly state: InstanceState }[] {
    const fleet = this.#fleet;
    return fleet.templates.instances().flatMap(({ definition }) => {
      const { serverId } = definition;
      const present = {
        get state() {
          return fleet.findByServerId(serverId)?.state ?? 'stopped';
        },
      };
      return runsAnywhere(definition) ? [present] : [];
    });
  }

  /** An instance was registered or changed. */
  changed(): void {
    this.#onChanged();
  }

  /** The gateway stops: it ends all instances itself, and starts none. */
  close(): void {
    this.#isClosed = true;
  }

  get mayFormerRun(): boolean {
    return this.#reaper.isWaiting;
  }

  list(): { readonly program: string; readonly changedAt: string }[] {
    const programs = new Map<string, string>();
    for (const [program, [ref]] of this.#refs) programs.set(program, ref?.definition.updatedAt ?? '');
    // A gateway that stops has no instances any more, and keeps each lease until the cluster has stopped the program.
    if (this.#isClosed) for (const program of this.#listeners.keys()) programs.set(program, '');
    for (const { definition } of this.#fleet.templates.instances())
      if (runsAnywhere(definition) && definition.locked === undefined)
        programs.set(definition.serverId, definition.updatedAt);
    return Array.from(programs, ([program, changedAt]) => ({ program, changedAt }));
  }

  onChanged(listener: () => void): void {
    this.#onChanged = listener;
  }

  start(program: string, listener: ProgramListener): void {
    if (this.#isClosed) return;
    const instance = this.#fleet.findByServerId(program);
    if (instance === undefined) return; // the next read shows that it is not registered
    this.#listeners.set(program, listener);
    if (!isRunHere(instance)) this.#fleet.add(instance.definition);
    else if (instance.state === 'healthy') listener.onStarted();
    this.#placed$.next(program);
  }

  stop(program: string): Promise<void> {
    this.#unlist(program);
    return this.#untilGone(program);
  }

  kill(program: string): Promise<void> {
    this.#unlist(program);
    for (const ref of this.#refs.get(program) ?? []) ref.leave(0);
    this.#reaper.kill(program);
    return this.#untilGone(program);
  }

  lease(untilMs: number): void {
    this.#reaper.lease(untilMs);
  }

  place(program: string, where: NodeLife | undefined, why: string | undefined): void {
    if (where === undefined && why === undefined) this.#locations.delete(program);
    else this.#locations.set(program, { where, why });
    if (where !== undefined) this.#placed$.next(program);
  }

  /** Takes a program out of the pool; it is listed as one of another node. */
  #unlist(program: string): void {
    this.#listeners.delete(program);
    this.#refused.delete(program);
    const instance = this.#fleet.findByServerId(program);
    if (!this.#isClosed && isRunHere(instance))
      this.#fleet.addElsewhere(instance.definition, () => this.reasonOf(program));
  }

  async #untilGone(program: string): Promise<void> {
    const refs = [...(this.#refs.get(program) ?? [])];
    await Promise.all(refs.map((ref) => firstValueFrom(ref.until$(() => ref.state === 'stopped'))));
  }

  #follow(ref: InstanceRef): void {
    const { serverId } = ref;
    const refs = this.#refs.get(serverId) ?? new Set();
    this.#refs.set(serverId, refs.add(ref));
    ref.watch((state) => {
      if (state === 'healthy') this.#listeners.get(serverId)?.onStarted();
      if (state !== 'stopped') return;
      refs.delete(ref);
      if (refs.size === 0) this.#refs.delete(serverId);
    });
    ref.onEmission((emission) => {
      if (emission.type === 'instance.restarting' && !emission.isPlanned)
        this.#listeners.get(serverId)?.onEnded(emission.reason, this.#refused.delete(serverId));
    });
  }
}

function isRunHere(instance: Instance | undefined): instance is InstanceRef {
  return instance instanceof InstanceRef && !instance.isElsewhere;
}

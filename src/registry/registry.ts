// The registry: templates, instances, definitions and views, each kind in a part of its own.

import type { Observable } from 'rxjs';
import { asGatewayError, hasCode } from '../domain/errors/errors.ts';
import { shuttingDown } from '../domain/errors/gateway-errors.ts';
import type { GatewayEvent } from '../domain/events/events.ts';
import { nodeOf } from '../domain/nodes/nodes.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import type { Store } from '../persistence/store.ts';
import type { LeaseReaper } from '../programs/lease-reaper.ts';
import { ActiveRegistry } from './active-registry.ts';
import { ChangeQueue, type RegistrySteps } from './change-queue.ts';
import { Follower } from './follower.ts';
import { DefinitionRegistry } from './kinds/definition-registry.ts';
import { InstanceRegistry, type InstanceRegistryDeps, START_TASKS } from './kinds/instance-registry.ts';
import { TemplateRegistry } from './kinds/template-registry.ts';
import { ViewRegistry } from './kinds/view-registry.ts';
import { LeasedPrograms } from './leased-programs.ts';
import { ToolApprovals } from './pinned/tool-approvals.ts';
import type { Protection } from './refusals.ts';

interface RegistryDeps
  extends Omit<InstanceRegistryDeps, 'active' | 'approvals' | 'leasedPrograms' | 'templates' | 'views'> {
  readonly store: Store;
  /** Changes of a store that other nodes write, too. Default: none. */
  readonly storeChanges$?: Observable<RevisionChange> | undefined;
  readonly programs?: Protection['programs'] & {
    /** Starts and ends the programs that any node may run, where there are other nodes. Default: there are none. */
    readonly leaseReaper?: LeaseReaper | undefined;
  };
}

/**
 * The registry of one gateway, from `load` to `close`. Synchronizes store and fleet: a change is durable first, then in
 * force. Changes, those of other nodes included, are serialized; reads do not wait. registry/follower.ts decides when
 * the changes of other nodes are read.
 */
export class Registry {
  readonly #deps: RegistryDeps;
  readonly #store: Store;
  readonly #active: ActiveRegistry;
  /** The template definitions of the store. */
  readonly storedDefinitions: DefinitionRegistry;
  readonly views: ViewRegistry;
  readonly templates: TemplateRegistry;
  readonly instances: InstanceRegistry;
  /** The approved tools of pinned templates and views. */
  readonly approvals: ToolApprovals;
  /** The programs that any node may run; undefined without other nodes. */
  readonly leasedPrograms: LeasedPrograms | undefined;
  /** Runs the tasks of large changes. */
  readonly scheduler: RegistryDeps['scheduler'];
  readonly #queue: ChangeQueue;
  readonly #follower: Follower;
  /** Revision of the store that is in force here: from right before the last read, or of a later change of this node alone. */
  #revision = Number.NaN;
  /** True while `load` reads the store: what was stored before is put in force without events. */
  #isLoading = false;
  #isClosed = false;

  constructor(deps: RegistryDeps) {
    this.#deps = deps;
    this.scheduler = deps.scheduler;
    this.#store = deps.store;
    this.#queue = new ChangeQueue(deps.scheduler, deps.clock.now);
    const steps: RegistrySteps = {
      change: (work) => this.#change(work),
      reload: () => this.#reload(),
      forceReload: () => this.#forceReload(),
      advance: (revision, count) => this.#advance(revision, count),
      isClosed: () => this.#isClosed,
    };
    const { fleet, programs: { leaseReaper } = {}, node: { id, worker } = {} } = deps;
    this.approvals = new ToolApprovals({
      ...deps,
      store: deps.store.approvals,
      hintsOf: (template) =>
        fleet.templates.has(template) ? (fleet.templates.group(template).policy.annotate ?? {}) : {},
      onChanged: (template) => fleet.listChanged$.next({ template, list: 'tools' }),
      steps,
    });
    this.leasedPrograms =
      leaseReaper && new LeasedPrograms({ fleet, reaper: leaseReaper, nodeId: id && nodeOf(id, worker) });
    const { approvals, leasedPrograms } = this;
    const own = { ...deps, approvals, leasedPrograms };
    const silent = { ...own, emit: (event: GatewayEvent) => this.#emit(event) };
    this.#active = new ActiveRegistry(silent);
    const isView = (name: string) => this.views.find(name) !== undefined;
    this.storedDefinitions = new DefinitionRegistry({ ...own, active: this.#active, isView }, steps);
    this.views = new ViewRegistry(silent, steps);
    const kinds = { ...own, active: this.#active, views: this.views };
    this.templates = new TemplateRegistry(kinds, steps);
    this.instances = new InstanceRegistry({ ...kinds, templates: this.templates }, steps);
    this.#follower = new Follower(() => this.reload(), deps.emit, deps.clock);
  }

  /** What is in force on this node, to be read. */
  get active(): Pick<
    ActiveRegistry,
    'find' | 'instanceDefinitions' | 'belongsHere' | 'hasSettings' | 'settings' | 'authOf'
  > {
    return this.#active;
  }

  /** Applies the changes of other nodes, when earlier changes have ended. DATABASE_UNAVAILABLE. */
  reload(): Promise<void> {
    return this.#queue.take(() => this.#reload(), 'read');
  }

  /** Starts the stored instances that this node runs, and applies the changes of other nodes from now on. */
  async load(): Promise<void> {
    await this.#queue.take(() => this.#reloadSilently());
    if (this.#deps.storeChanges$ !== undefined) this.#follower.follow(this.#deps.storeChanges$);
  }

  /** Reloads as the first change of an import: refused after `close`, and requested again after a failure. */
  async reloadForImport(): Promise<void> {
    await this.#change(() => this.#reload());
  }

  /** Refuses changes, and starts no more programs, from now on; resolves when earlier changes have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.leasedPrograms?.close();
    this.#follower.close();
    await this.#queue.idle();
  }

  async #change<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw shuttingDown();
    try {
      return await this.#queue.take(work);
    } catch (thrown) {
      // The change may have been stored all the same, or in part: the reload shows whether it was.
      if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) {
        if (asGatewayError(thrown).delivered === 'unknown') this.#revision = Number.NaN;
        this.#follower.requestReload();
      }
      throw thrown;
    }
  }

  /** Applies the changes of other nodes. Costs one query when there are none. */
  async #reload(): Promise<void> {
    const revision = await this.#store.revision();
    if (revision === this.#revision) return;
    // The order matters: a template is stored before its instances.
    const instances = await this.#store.instances.list();
    const templates = await this.#store.templates.list();
    const views = await this.#store.views.list();
    const visit = () => {
      if (this.#isClosed) throw shuttingDown(); // what was not applied yet would only be ended again
    };
    const definitions = await this.storedDefinitions.read();
    await this.approvals.read(
      templates,
      views.map(({ definition }) => definition),
    );
    const steps = this.#active.apply({ templates, instances, definitions });
    await this.#deps.scheduler.each(steps, visit, (hasStarted) => (hasStarted ? START_TASKS : 1));
    await this.views.apply(views);
    this.#revision = revision;
  }

  async #reloadSilently(): Promise<void> {
    this.#isLoading = true;
    try {
      await this.#reload();
    } finally {
      this.#isLoading = false;
    }
  }

  #emit(event: GatewayEvent): void {
    if (!this.#isLoading) this.#deps.emit(event);
  }

  #forceReload(): Promise<void> {
    this.#revision = Number.NaN;
    return this.#reload();
  }

  /** Notes the revision of an own change: if it follows the one in force, there is nothing to read. False without a change. */
  #advance(revision: number | undefined, count = 1): boolean {
    if (revision === this.#revision + count) this.#revision = revision;
    return revision !== undefined;
  }
}

// The registry: templates, instances, definitions and views, each kind in a part of its own.

import type { Observable } from 'rxjs';
import { shuttingDown } from '../domain/errors/gateway-errors.ts';
import type { GatewayEvent } from '../domain/events/events.ts';
import { nodeOf } from '../domain/nodes/nodes.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import type { Store } from '../persistence/store.ts';
import type { LeaseReaper } from '../programs/lease-reaper.ts';
import { ActiveRegistry } from './active-registry.ts';
import { DefinitionRegistry } from './kinds/definition-registry.ts';
import { InstanceRegistry, type InstanceRegistryDeps, START_TASKS } from './kinds/instance-registry.ts';
import { TemplateRegistry } from './kinds/template-registry.ts';
import { ViewRegistry } from './kinds/view-registry.ts';
import { LeasedPrograms } from './leased-programs.ts';
import { ToolApprovals } from './pinned/tool-approvals.ts';
import type { Protection } from './refusals.ts';
import { RegistryChanges } from './registry-changes.ts';

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
 * force. registry-changes.ts runs the changes, those of other nodes included, one after the other; reads do not wait.
 */
export class Registry {
  readonly #deps: RegistryDeps;
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
  readonly #changes: RegistryChanges;

  constructor(deps: RegistryDeps) {
    this.#deps = deps;
    this.scheduler = deps.scheduler;
    const { store, clock, scheduler, emit } = deps;
    const changes = new RegistryChanges({ store, clock, scheduler, emit, apply: () => this.#apply() });
    this.#changes = changes;
    const { fleet, programs: { leaseReaper } = {}, node: { id, worker } = {} } = deps;
    this.approvals = new ToolApprovals({
      ...deps,
      store: store.approvals,
      hintsOf: (template) =>
        fleet.templates.has(template) ? (fleet.templates.group(template).policy.annotate ?? {}) : {},
      onChanged: (template) => fleet.listChanged$.next({ template, list: 'tools' }),
      changes,
    });
    this.leasedPrograms = leaseReaper && new LeasedPrograms(fleet, leaseReaper, id && nodeOf(id, worker));
    const { approvals, leasedPrograms } = this;
    const own = { ...deps, approvals, leasedPrograms };
    // What was stored before is put in force without events.
    const emitNews = (event: GatewayEvent): void => {
      if (!changes.isLoading) emit(event);
    };
    const silent = { ...own, emit: emitNews };
    this.#active = new ActiveRegistry(silent);
    const isView = (name: string) => this.views.find(name) !== undefined;
    this.storedDefinitions = new DefinitionRegistry({ ...own, active: this.#active, isView }, changes);
    this.views = new ViewRegistry(silent, changes);
    const kinds = { ...own, active: this.#active, views: this.views };
    this.templates = new TemplateRegistry(kinds, changes);
    this.instances = new InstanceRegistry({ ...kinds, templates: this.templates }, changes);
  }

  /** What is in force on this node, to be read. */
  get active(): Pick<
    ActiveRegistry,
    'find' | 'instanceDefinitions' | 'belongsHere' | 'hasSettings' | 'settings' | 'authOf'
  > {
    return this.#active;
  }

  /** Applies the changes of other nodes, when earlier changes have ended. Throws DATABASE_UNAVAILABLE. */
  catchUp(): Promise<void> {
    return this.#changes.catchUp();
  }

  /** Starts the stored instances that this node runs, and applies the changes of other nodes from now on. */
  load(): Promise<void> {
    return this.#changes.load(this.#deps.storeChanges$);
  }

  /** Reloads as the first change of an import: refused after `close`, and requested again after a failure. */
  reloadForImport(): Promise<void> {
    return this.#changes.run(() => this.#changes.reload());
  }

  /** Refuses changes, and starts no more programs, from now on; resolves when earlier changes have ended. */
  async close(): Promise<void> {
    const ended = this.#changes.close();
    this.leasedPrograms?.close();
    await ended;
  }

  /** Puts in force what is stored. */
  async #apply(): Promise<void> {
    // The order matters: a template is stored before its instances.
    const { store, scheduler } = this.#deps;
    const instances = await store.instances.list();
    const templates = await store.templates.list();
    const views = await store.views.list();
    const visit = () => {
      if (this.#changes.isClosed) throw shuttingDown(); // what was not applied yet would only be ended again
    };
    const definitions = await this.storedDefinitions.read();
    await this.approvals.read(
      templates,
      views.map(({ definition }) => definition),
    );
    const steps = this.#active.apply({ templates, instances, definitions });
    await scheduler.each(steps, visit, (hasStarted) => (hasStarted ? START_TASKS : 1));
    await this.views.apply(views);
  }
}

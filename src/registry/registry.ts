// The registry: templates with their settings, instances with their definitions. Synchronizes store and fleet: a change is
// durable first, then in force. Changes, those of other nodes included, are serialized; reads do not wait.
// registry/follower.ts decides when the changes of other nodes are read.

import { randomBytes } from 'node:crypto';
import { filter, firstValueFrom, type Observable, race } from 'rxjs';
import { InstanceRef } from '../actors/instances/instance-ref.ts';
import type { Instance } from '../actors/template-group.ts';
import type { LoadBalancerChange, LoadBalancerSettings } from '../balancing/policy-schemas.ts';
import {
  changedTemplate,
  type TemplateChange,
  type TemplateSettings,
} from '../balancing/template-settings.ts';
import { hasCode } from '../domain/errors/errors.ts';
import { databaseUnavailable, shuttingDown } from '../domain/errors/gateway-errors.ts';
import { duplicateServer, notHealthyInTime } from '../domain/errors/registry-errors.ts';
import type {
  InstanceChange,
  InstanceDefinition,
  InstanceInput,
  TemplateAuth,
} from '../domain/instances/instance.ts';
import { isMissing } from '../domain/instances/start-failure.ts';
import { isStored } from '../domain/instances/transport-kinds.ts';
import { definedFields } from '../domain/json/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { runsAnywhere } from '../domain/nodes/nodes.ts';
import {
  changedInstance,
  defineInstance,
  type RegistrationContext,
  withTemplateAuth,
} from '../domain/registration/registration.ts';
import { timer$ } from '../domain/time/clock-streams.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import type { Store } from '../persistence/store.ts';
import { ActiveRegistry, type ActiveRegistryDeps } from './active-registry.ts';
import { ChangeQueue, type RegistrySteps } from './change-queue.ts';
import { checkedInstance, checkedInstanceChange, checkedTemplate, checkName } from './checked-input.ts';
import { DefinitionRegistry } from './definition-registry.ts';
import { Follower } from './follower.ts';
import { type Protection, refuseDenied, refuseExposing } from './refusals.ts';
import type { RegisterOptions, Registration, RegistryInput } from './registry-types.ts';
import { ViewRegistry } from './view-registry.ts';

/** Attempts to store an instance that other nodes change meanwhile. */
const ATTEMPTS = 5;

interface RegistryDeps extends ActiveRegistryDeps, Protection {
  readonly store: Store;
  /** Spreads the starts and ends of thousands of instances over several turns of the event loop. */
  readonly scheduler: TaskScheduler;
  /** New programs without a working directory may run on any node. Default false. */
  readonly isAnyDefault?: boolean | undefined;
  readonly accounts?: RegistrationContext['accounts'];
  readonly hasEphemeralNodes?: boolean | undefined;
  /** Changes of a store that other nodes write, too. Default: none. */
  readonly storeChanges$?: Observable<RevisionChange> | undefined;
}

export class Registry {
  readonly #deps: RegistryDeps;
  readonly #store: Store;
  readonly active: Pick<
    ActiveRegistry,
    'find' | 'instanceDefinitions' | 'belongsHere' | 'hasSettings' | 'settings' | 'authOf'
  >;
  readonly #active: ActiveRegistry;
  /** The template definitions of the store. */
  readonly definitions: DefinitionRegistry;
  readonly views: ViewRegistry;
  /** Runs the tasks of large changes. */
  readonly scheduler: RegistryDeps['scheduler'];
  readonly #queue: ChangeQueue;
  readonly #follower: Follower;
  /** Revision of the store that is in force here: from right before the last read, or of a later change of this node alone. */
  #revision = Number.NaN;
  #isClosed = false;

  constructor(deps: RegistryDeps) {
    this.#deps = deps;
    this.scheduler = deps.scheduler;
    this.#store = deps.store;
    this.#queue = new ChangeQueue(deps.scheduler, deps.clock.now);
    this.#active = new ActiveRegistry(deps);
    this.active = this.#active;
    const steps: RegistrySteps = {
      change: (work) => this.#change(work),
      reload: () => this.#reload(),
      advance: (revision) => this.#advance(revision),
    };
    const isView = (name: string) => this.views.find(name) !== undefined;
    this.definitions = new DefinitionRegistry({ ...deps, active: this.#active, isView }, steps);
    this.views = new ViewRegistry(deps, steps);
    this.#follower = new Follower(() => this.catchUp(), deps.emit, deps.clock);
  }

  /** Applies what other nodes have changed in the store. DATABASE_UNAVAILABLE. */
  catchUp(): Promise<void> {
    return this.#queue.take(() => this.#reload(), true);
  }

  /** Starts the stored instances that this node runs, and applies the changes of other nodes from now on. */
  async load(): Promise<void> {
    await this.#queue.take(() => this.#reload(true));
    if (this.#deps.storeChanges$ !== undefined) this.#follower.follow(this.#deps.storeChanges$);
  }

  /**
   * Stores an instance and starts it; one with the same id in the template is replaced in place. VALIDATION_ERROR;
   * DUPLICATE_SERVER when an entry of a file or of sync would replace an instance of another source, ENDPOINT_NOT_ALLOWED for a
   * denied address, COMMAND_NOT_ALLOWED for a command with a protected path; BACKEND_UNAVAILABLE when the instance is not healthy
   * after `waitMs`, or its program does not exist, SERVER_NOT_FOUND when it was removed meanwhile.
   */
  async register(
    template: string,
    written: InstanceInput,
    options: RegisterOptions = {},
  ): Promise<Registration> {
    const input = checkedInstance(template, written, options);
    const settings = checkedTemplate(template, options.loadBalancer ?? {});
    const { instance: made, replaced } = await this.#change(async () => {
      // First, so that nothing is stored for an instance that is refused.
      await refuseExposing(this.#define(template, input, options), this.#deps);
      const areSettingsStored = await this.#saveSettings(settings);
      const saved = this.#save(() => this.#define(template, input, options));
      const definition = await saved.catch((thrown: unknown) => {
        const isPartlyStored = areSettingsStored && hasCode(thrown, 'DATABASE_UNAVAILABLE');
        throw isPartlyStored ? databaseUnavailable(thrown, 'unknown') : thrown;
      });
      const replaced = this.#active.find(template, definition.id) !== undefined;
      const { source = 'api' } = options;
      const instance =
        source === 'api' ? this.#active.start(definition, options.handler) : this.#active.put(definition); // an entry with another weight is no reason to open the instance again
      return { instance, replaced };
    });
    const { waitMs = 0, mayBeUnhealthy = false } = options;
    const instance = waitMs > 0 ? await this.#untilHealthy(made, waitMs) : made;
    const { definition, state, reason } = instance;
    const healthy = state === 'healthy';
    const isElsewhere =
      !(instance instanceof InstanceRef) &&
      this.#deps.fleetPrograms?.nodeOf(definition.serverId) !== undefined;
    if (waitMs > 0 && !healthy && !mayBeUnhealthy && !isElsewhere)
      throw this.#isClosed ? shuttingDown() : notHealthyInTime(definition, instance, waitMs);
    return { definition, replaced, state, healthy, reason };
  }

  /**
   * Registers entries of a file or of sync with one change of the store. False, and no instance is changed, when one of them
   * cannot be registered, or another node changed one meanwhile: `register` tells why. DATABASE_UNAVAILABLE.
   */
  async registerTogether(entries: readonly RegistryInput[]): Promise<boolean> {
    try {
      const inputs = entries.map((each) => ({
        ...each,
        input: checkedInstance(each.template, each.written, each.options),
      }));
      return await this.#change(async () => {
        const define = () => {
          const taken = new Set<string>();
          return inputs.map(({ template, input, options }) => {
            const definition = this.#define(template, input, options, taken);
            taken.add(definition.serverId);
            return definition;
          });
        };
        await Promise.all(define().map((definition) => refuseExposing(definition, this.#deps)));
        for (const template of new Set(entries.map(({ template }) => template)))
          await this.#saveSettings({ name: template, loadBalancer: {} });
        const definitions = define();
        this.#active.refuseOverflow(...definitions);
        const saves = definitions.map((definition) => {
          const { template, id } = definition;
          return { definition, before: this.#active.find(template, id) ?? null };
        });
        if (saves.some(({ before }) => before !== null && !isStored(before))) return false;
        const revision = await this.#store.instances.saveMany(saves);
        if (!this.#advance(revision, saves.length)) return false;
        const put = (definition: InstanceDefinition): void => void this.#active.put(definition);
        await this.#deps.scheduler.each(definitions, put, () => LIMITS.startTasks);
        return true;
      });
    } catch (thrown) {
      if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) throw thrown;
      return false;
    }
  }

  /** The definition that `register` would store, after the same checks. Stores nothing. Errors as of `register`. */
  async draft(
    template: string,
    written: InstanceInput,
    options: RegisterOptions = {},
  ): Promise<InstanceDefinition> {
    const definition = this.#define(template, checkedInstance(template, written, options), options);
    await refuseExposing(definition, this.#deps);
    return definition;
  }

  /**
   * Removes an instance from the pool and from the store; its running calls may finish. An instance of a file or of sync leaves a
   * tombstone, so that the next import does not add it again. TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND.
   */
  deregister(template: string, id: string): Promise<void> {
    return this.#change(async () => {
      await this.#reload(); // the tombstone needs the present fingerprint
      const { fingerprint } = this.#deps.fleet.group(template).instance(id).definition;
      this.#advance(await this.#store.instances.delete(template, id, fingerprint));
      this.#active.remove(template, id);
    });
  }

  /**
   * Removes instances that their file or sync no longer has, with one change of the store. Resolves with their ids, without those
   * that are gone, have another source, or run on another node.
   */
  withdraw(template: string, ids: readonly string[], source: 'file' | 'sync'): Promise<readonly string[]> {
    return this.#change(async () => {
      await this.#reload(); // another node may have replaced them since the import began
      const own = ids.filter((id) => {
        const found = this.#active.find(template, id);
        return found?.source === source && this.#active.belongsHere(found);
      });
      if (own.length === 0) return own;
      this.#advance(await this.#store.instances.deleteMany(template, own));
      await this.#deps.scheduler.each(own, (id) => this.#active.remove(template, id));
      return own;
    });
  }

  /** Another era opens the instance again. TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND, VALIDATION_ERROR, REGISTRY_FULL. */
  async changeInstance(template: string, id: string, written: InstanceChange): Promise<InstanceDefinition> {
    const change = checkedInstanceChange(written);
    return this.#change(async () => {
      if (this.#active.find(template, id) === undefined) await this.#reload();
      const definition = await this.#save(() => {
        const before = this.#deps.fleet.group(template).instance(id).definition;
        const after = changedInstance(before, change, new Date(this.#deps.clock.wall()).toISOString());
        this.#active.refuseOverflow(after);
        return after;
      });
      this.#active.change(definition);
      return definition;
    });
  }

  /** Applies the changes of other nodes now, before an import that compares with them. */
  async refresh(): Promise<void> {
    await this.#change(() => this.#reload());
  }

  /** By id: the fingerprints of the entries that were deleted through the API. */
  tombstones(template: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return this.#store.instances.findTombstones(template, ids);
  }

  /** Creates the template if there is none, and merges these settings into its own. VALIDATION_ERROR. */
  async ensureTemplate(template: string, settings: LoadBalancerSettings, auth?: TemplateAuth): Promise<void> {
    checkName(template);
    const change = checkedTemplate(template, settings, auth);
    await this.#change(() => this.#saveSettings(change));
  }

  /** Merges settings into those of a template, replaces its `auth`; null removes one. TEMPLATE_NOT_FOUND, VALIDATION_ERROR. */
  async changeTemplate(
    template: string,
    written: LoadBalancerChange,
    auth?: TemplateAuth | null,
  ): Promise<TemplateSettings> {
    const change = checkedTemplate(template, written, auth);
    return this.#change(async () => {
      await this.#reload();
      this.#active.settings(template);
      await this.#saveSettings(change);
      return this.#active.settings(template);
    });
  }

  /**
   * Deletes a template and its settings. TEMPLATE_NOT_FOUND; VALIDATION_ERROR while it has instances on any node. A template with
   * a definition remains, with the default settings.
   */
  deleteTemplate(template: string): Promise<void> {
    return this.#change(async () => {
      await this.#reload();
      this.#active.refuseNonEmpty(template);
      if (!this.#advance(await this.#store.templates.delete(template))) {
        // It was not stored, or another node has just registered an instance in it.
        await this.#reload();
        this.#active.refuseNonEmpty(template);
      }
      this.#active.deleteTemplate(template);
    });
  }

  /** Refuses changes from now on; resolves when earlier ones have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#follower.close();
    await this.#queue.idle();
  }

  async #change<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw shuttingDown();
    try {
      return await this.#queue.take(work);
    } catch (thrown) {
      // The change may have been stored all the same: the reload shows whether it was.
      if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) this.#follower.requestReload();
      throw thrown;
    }
  }

  /** Applies the changes of other nodes. Costs one query when there are none. */
  async #reload(isStart = false): Promise<void> {
    const revision = await this.#store.revision();
    if (revision === this.#revision) return;
    // In this order: a template is stored before its instances.
    const instances = await this.#store.instances.list();
    const templates = await this.#store.templates.list();
    const views = await this.#store.views.list();
    const visit = () => {
      if (this.#isClosed) throw shuttingDown(); // what was not applied yet would only be ended again
    };
    const definitions = await this.definitions.read();
    await this.#deps.approvals?.read(
      templates,
      views.map(({ definition }) => definition),
    );
    const steps = this.#active.apply({ templates, instances, definitions }, isStart);
    await this.#deps.scheduler.each(steps, visit, (hasStarted) => (hasStarted ? LIMITS.startTasks : 1));
    this.views.apply(views, isStart);
    this.#revision = revision;
  }

  /** Notes the revision of an own change: if it follows the one in force, there is nothing to read. False without a change. */
  #advance(revision: number | undefined, count = 1): boolean {
    if (revision === this.#revision + count) this.#revision = revision;
    return revision !== undefined;
  }

  /** `taken`: server ids of others that are registered with it. */
  #define(
    template: string,
    input: InstanceInput,
    options: RegisterOptions,
    taken?: ReadonlySet<string>,
  ): InstanceDefinition {
    const { nodeId, isAnyDefault, hasEphemeralNodes, accounts, fleet } = this.#deps;
    // Operators set weight and metadata of a found instance, which has none; perhaps while the sync runs.
    const before = options.source === 'sync' ? this.#active.find(template, input.id ?? '') : undefined;
    const { weight, metadata } = before ?? {};
    const own = { ...definedFields({ weight, metadata }), ...input };
    const written = withTemplateAuth(own, this.#active.authOf(template));
    const definition = defineInstance(template, written, {
      ...options,
      now: new Date(this.#deps.clock.wall()).toISOString(),
      isInProcess: options.handler !== undefined,
      nodeId,
      isAnyDefault,
      hasEphemeralNodes,
      accounts,
      find: (id) => this.#active.find(template, id),
      usesAccounts: (endpoint, who) => this.#active.usesAccounts(template, endpoint, who),
      isServerIdTaken: (serverId) =>
        fleet.findByServerId(serverId) !== undefined || taken?.has(serverId) === true,
      randomHex: () => randomBytes(4).toString('hex'),
    });
    this.views.refuseTemplate(template);
    this.#active.refuseOverflow(definition);
    refuseDenied(definition.endpoint, this.#deps);
    const { source } = definition;
    if (source !== 'api' && (this.#active.find(template, definition.id)?.source ?? source) !== source)
      throw duplicateServer(definition.id);
    return definition;
  }

  /**
   * Stores the instance that `make` makes of the one in force. When another node has replaced, changed or removed that one, or
   * has taken the server id, it applies the changes of other nodes and makes it again.
   */
  async #save(make: () => InstanceDefinition): Promise<InstanceDefinition> {
    for (let left = ATTEMPTS; left > 0; left -= 1) {
      const definition = make();
      const { template, id } = definition;
      const before = this.#active.find(template, id);
      // A function is not stored and lasts as long as the program. It replaces a stored instance with its id, and vice versa.
      const wasFunction = before !== undefined && !isStored(before);
      try {
        if (!isStored(definition)) {
          if (!wasFunction) this.#advance(await this.#store.instances.delete(template, id));
          return definition;
        }
        const expected = wasFunction ? undefined : (before ?? null);
        if (this.#advance(await this.#store.instances.save(definition, expected))) return definition;
      } catch (thrown) {
        if (!hasCode(thrown, 'DUPLICATE_SERVER') || left === 1) throw thrown;
      }
      this.#revision = Number.NaN; // a row that was edited by hand has changed without it
      await this.#reload();
    }
    throw databaseUnavailable(new Error('other nodes changed it again and again'), 'no');
  }

  async #saveSettings(change: TemplateChange): Promise<boolean> {
    const { name, loadBalancer, auth } = change;
    this.views.refuseTemplate(name);
    const isEmpty = Object.keys(loadBalancer).length === 0 && auth === undefined;
    if (isEmpty && this.#active.hasSettings(change)) return false;
    await this.#reload();
    if (this.#active.hasSettings(change)) return false;
    const { fleet, approvals } = this.#deps;
    const before = fleet.has(name) ? this.#active.settings(name) : { loadBalancer: {} };
    const wasPinned = approvals?.isPinned(name) === true;
    this.#advance(await this.#store.templates.save(change));
    this.#active.applySettings(changedTemplate(before, change));
    this.#advance(await approvals?.settle(name, wasPinned, fleet.group(name).refs));
    return true;
  }

  /**
   * Resolves when the instance is healthy, has stopped or is missing its program, after `waitMs` at the latest. At once for
   * an instance of another node: one that any node may run is first waited for until a node runs it.
   */
  async #untilHealthy(made: Instance, waitMs: number): Promise<Instance> {
    const { fleetPrograms, fleet, clock } = this.#deps;
    const { serverId } = made;
    const late$ = timer$(clock, waitMs);
    const isWaited = runsAnywhere(made.definition) && fleetPrograms !== undefined;
    const untilMs = clock.now() + waitMs;
    if (isWaited) await firstValueFrom(race(fleetPrograms.placed(serverId), late$));
    const instance = isWaited ? (fleet.findByServerId(serverId) ?? made) : made;
    if (!(instance instanceof InstanceRef)) return instance;
    const settled$ = instance.state$.pipe(
      filter((state) => state === 'healthy' || state === 'stopped' || isMissing(instance.reason)),
    );
    await firstValueFrom(race(settled$, timer$(clock, Math.max(0, untilMs - clock.now()))));
    return instance;
  }
}

// The instances of the registry: stored first, then started or ended on this node, then on the others. Their input is
// checked before.

import { randomBytes } from 'node:crypto';
import { firstValueFrom, race } from 'rxjs';
import type { Instance } from '../../actors/fleet/template-group.ts';
import { InstanceRef } from '../../actors/instances/instance-ref.ts';
import { hasCode } from '../../domain/errors/errors.ts';
import { databaseUnavailable, shuttingDown } from '../../domain/errors/gateway-errors.ts';
import { duplicateServer, notHealthyInTime } from '../../domain/errors/registry-errors.ts';
import { commandWords } from '../../domain/instances/command.ts';
import type { InstanceChange, InstanceDefinition, InstanceInput } from '../../domain/instances/instance.ts';
import { isMissing } from '../../domain/instances/start-failure.ts';
import { isFunction, runsProgram } from '../../domain/instances/transport-kinds.ts';
import { definedFields } from '../../domain/json/json.ts';
import { runsAnywhere } from '../../domain/nodes/nodes.ts';
import {
  changedInstance,
  defineInstance,
  type RegistrationContext,
  withTemplateAuth,
} from '../../domain/registration/registration.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { Store } from '../../persistence/store.ts';
import { MAX_CHANGE_ROUNDS, untilTaken } from '../../persistence/until-taken.ts';
import type { ActiveRegistry, ActiveRegistryDeps } from '../active-registry.ts';
import { checkedInstance, checkedInstanceChange, checkedTemplate } from '../checked-input.ts';
import { refuseOtherVersion } from '../if-match.ts';
import type { ToolApprovals } from '../pinned/tool-approvals.ts';
import { type Protection, refuseDenied, refuseExposing } from '../refusals.ts';
import type { RegistryChanges } from '../registry-changes.ts';
import type { RegisterOptions, Registration } from '../registry-types.ts';
import type { TemplateRegistry } from './template-registry.ts';
import type { ViewRegistry } from './view-registry.ts';

/**
 * The number of tasks that the start of an instance counts as: the answers of its handshake arrive in later turns. Source: ADR
 * 94.
 */
export const START_TASKS = 5;

export interface InstanceRegistryDeps extends ActiveRegistryDeps, Protection {
  readonly store: Pick<Store, 'instances'>;
  readonly active: ActiveRegistry;
  readonly templates: Pick<TemplateRegistry, 'save'>;
  readonly approvals: Pick<ToolApprovals, 'setPinned' | 'settled'>;
  readonly views: Pick<ViewRegistry, 'refuseTemplate'>;
  /** Spreads the starts and ends of thousands of instances over several turns of the event loop. */
  readonly scheduler: TaskScheduler;
  readonly accounts?: RegistrationContext['accounts'];
}

/** The part of the registry that registers, changes and removes instances. */
export class InstanceRegistry {
  readonly #deps: InstanceRegistryDeps;
  readonly #changes: RegistryChanges;

  constructor(deps: InstanceRegistryDeps, changes: RegistryChanges) {
    this.#deps = deps;
    this.#changes = changes;
  }

  /**
   * Stores an instance and starts it; one with the same id in the template is replaced in place. Throws VALIDATION_ERROR;
   * DUPLICATE_SERVER when an entry of a file or of sync would replace an instance of another source, ENDPOINT_NOT_ALLOWED for a
   * denied address, COMMAND_NOT_ALLOWED for a command with a protected path; PRECONDITION_FAILED; BACKEND_UNAVAILABLE when the
   * instance is not healthy after `waitMs`, or its program does not exist, SERVER_NOT_FOUND when it was removed meanwhile.
   */
  async register(
    template: string,
    written: InstanceInput,
    options: RegisterOptions = {},
  ): Promise<Registration> {
    const input = checkedInstance(template, written, options);
    const settings = checkedTemplate(template, options.loadBalancer ?? {});
    const check = runsProgram(input) ? () => this.#refuseExposing(input, options) : undefined;
    const { instance: made, replaced } = await this.#changes.run(async () => {
      if (options.ifMatch !== undefined) await this.#changes.reload();
      this.#define(template, input, options); // first, so that nothing is stored for an instance that is refused
      const areSettingsStored = await this.#deps.templates.save(settings);
      const make = () => this.#define(template, input, options);
      const saved = this.#save(make, (present) => isSameEntry(present, options));
      const definition = await saved.catch((thrown: unknown) => {
        const isPartlyStored = areSettingsStored && hasCode(thrown, 'DATABASE_UNAVAILABLE');
        throw isPartlyStored ? databaseUnavailable(thrown, 'unknown') : thrown;
      });
      const replaced = this.#deps.active.find(template, definition.id) !== undefined;
      const { source = 'api' } = options;
      const instance =
        source === 'api'
          ? this.#deps.active.start(definition, options.handler)
          : this.#deps.active.put(definition); // an entry with another weight is not a reason to open the instance again
      return { instance, replaced };
    }, check);
    await this.#deps.approvals.settled(template);
    const { waitMs = 0, mayBeUnhealthy = false } = options;
    const instance = waitMs > 0 ? await this.#untilHealthy(made, waitMs) : made;
    const { definition, state, reason } = instance;
    const healthy = state === 'healthy';
    const isElsewhere =
      !(instance instanceof InstanceRef) &&
      this.#deps.leasedPrograms?.nodeOf(definition.serverId) !== undefined;
    if (waitMs > 0 && !healthy && !mayBeUnhealthy && !isElsewhere)
      throw this.#changes.isClosed ? shuttingDown() : notHealthyInTime(definition, instance, waitMs);
    return { definition, replaced, state, healthy, reason };
  }

  /**
   * Registers entries of a file or of sync with one change of the store. False, and no instance is changed, when one of them
   * cannot be registered, or another node changed one meanwhile: `register` tells why. Throws DATABASE_UNAVAILABLE.
   */
  async registerTogether(
    entries: readonly {
      readonly template: string;
      readonly written: InstanceInput;
      readonly options: RegisterOptions;
    }[],
  ): Promise<boolean> {
    try {
      const inputs = entries.map((each) => ({
        ...each,
        input: checkedInstance(each.template, each.written, each.options),
      }));
      const check = () =>
        Promise.all(inputs.map(({ input, options }) => this.#refuseExposing(input, options)));
      return await this.#changes.run(async () => {
        const define = (wanted = inputs) => {
          const taken = new Set<string>();
          return wanted.map(({ template, input, options }) => {
            const definition = this.#define(template, input, options, taken);
            taken.add(definition.serverId);
            return definition;
          });
        };
        define(); // first, as for one instance
        for (const template of new Set(entries.map(({ template }) => template)))
          await this.#deps.templates.save({ name: template, loadBalancer: {} });
        const isInForce = ({ template, input: { id = '' }, options }: (typeof inputs)[number]) => {
          const present = this.#deps.active.find(template, id);
          return present !== undefined && isSameEntry(present, options);
        };
        const definitions = define(inputs.filter((each) => !isInForce(each)));
        if (definitions.length === 0) return true;
        this.#deps.active.refuseOverflow(...definitions);
        const saves = definitions.map((definition) => {
          const { template, id } = definition;
          return { definition, before: this.#deps.active.find(template, id) ?? null };
        });
        if (saves.some(({ before }) => before !== null && isFunction(before))) return false;
        const revision = await this.#deps.store.instances.saveMany(saves);
        if (!this.#changes.advance(revision, saves.length)) return false;
        const put = (definition: InstanceDefinition): void => void this.#deps.active.put(definition);
        await this.#deps.scheduler.each(definitions, put, () => START_TASKS);
        return true;
      }, check);
    } catch (thrown) {
      if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) throw thrown;
      return false;
    }
  }

  /** The definition that `register` would store, after the same checks. Stores nothing. Errors as for `register`. */
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
   * tombstone, so that the next import does not add it again. Throws TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND.
   */
  deregister(template: string, id: string): Promise<void> {
    return this.#changes.run(async () => {
      await this.#changes.reload(); // the tombstone needs the present fingerprint
      const { fingerprint } = this.#deps.fleet.templates.group(template).instance(id).definition;
      this.#changes.advance(await this.#deps.store.instances.delete(template, id, fingerprint));
      this.#deps.active.remove(template, id);
    });
  }

  /**
   * Removes instances that their file or sync no longer has, with one change of the store. Resolves with their ids, without those
   * that are gone, have another source, or run on another node.
   */
  withdraw(template: string, ids: readonly string[], source: 'file' | 'sync'): Promise<readonly string[]> {
    return this.#changes.run(async () => {
      await this.#changes.reload(); // another node may have replaced them since the import began
      return untilTaken(async () => {
        const own = ids.filter((id) => {
          const found = this.#deps.active.find(template, id);
          return found?.source === source && this.#deps.active.belongsHere(found);
        });
        if (own.length === 0) return own;
        if (this.#changes.advance(await this.#deps.store.instances.deleteMany(template, own, source))) {
          await this.#deps.scheduler.each(own, (id) => this.#deps.active.remove(template, id));
          return own;
        }
        await this.#changes.forceReload(); // another node has replaced or removed one just now
        return undefined;
      });
    });
  }

  /**
   * Changes an instance. Another era opens it again. Throws TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND, VALIDATION_ERROR,
   * REGISTRY_FULL.
   */
  async change(template: string, id: string, written: InstanceChange): Promise<InstanceDefinition> {
    const change = checkedInstanceChange(written);
    return this.#changes.run(async () => {
      if (this.#deps.active.find(template, id) === undefined) await this.#changes.reload();
      const definition = await this.#save(() => {
        const before = this.#deps.fleet.templates.group(template).instance(id).definition;
        const after = changedInstance(before, change, new Date(this.#deps.clock.wall()).toISOString());
        this.#deps.active.refuseOverflow(after);
        return after;
      });
      this.#deps.active.change(definition);
      return definition;
    });
  }

  /** The fingerprints, by id, of the entries that were deleted through the API. */
  tombstones(template: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return this.#deps.store.instances.findTombstones(template, ids);
  }

  /** Throws COMMAND_NOT_ALLOWED. To be called outside of a change: the file system may take seconds to answer. */
  async #refuseExposing(input: InstanceInput, { container }: RegisterOptions): Promise<void> {
    const written = commandWords(input);
    if (!runsProgram(input) || 'problem' in written) return; // `#define` refuses it
    const [command = '', ...args] = written.words;
    const { env_vars: env = {}, working_dir: workingDir, force } = input;
    const program = { command, args, env, ...definedFields({ workingDir, container }) };
    if (force !== true) await refuseExposing(program, this.#deps);
  }

  /** `taken`: server ids of others that are registered with it. */
  #define(
    template: string,
    input: InstanceInput,
    options: RegisterOptions,
    taken?: ReadonlySet<string>,
  ): InstanceDefinition {
    const { node: { id: nodeId, isAnyDefault, hasEphemeralNodes } = {}, accounts, fleet } = this.#deps;
    const { id: given = '' } = input;
    const before = this.#deps.active.find(template, given);
    refuseOtherVersion(['instance', given], options.ifMatch, before?.updatedAt);
    // Operators set weight and metadata of a found instance, which has none; perhaps while the sync runs.
    const { weight, metadata } = (options.source === 'sync' && before) || {};
    const own = { ...definedFields({ weight, metadata }), ...input };
    const written = withTemplateAuth(own, this.#deps.active.authOf(template));
    const definition = defineInstance(template, written, {
      ...options,
      now: new Date(this.#deps.clock.wall()).toISOString(),
      isInProcess: options.handler !== undefined,
      nodeId,
      isAnyDefault,
      hasEphemeralNodes,
      accounts,
      find: (id) => this.#deps.active.find(template, id),
      usesAccounts: (endpoint, who) => this.#deps.active.usesAccounts(template, endpoint, who),
      isServerIdTaken: (serverId) =>
        fleet.findByServerId(serverId) !== undefined || taken?.has(serverId) === true,
      randomHex: () => randomBytes(4).toString('hex'),
    });
    this.#deps.views.refuseTemplate(template);
    this.#deps.active.refuseOverflow(definition);
    refuseDenied(definition.endpoint, this.#deps);
    const { source } = definition;
    if (source !== 'api' && (this.#deps.active.find(template, definition.id)?.source ?? source) !== source)
      throw duplicateServer(definition.id);
    return definition;
  }

  /**
   * Stores the instance that `make` makes of the one in force. When another node has replaced, changed or removed that one, or
   * has taken the server id, it applies the changes of other nodes and makes it again, unless `isDone` is true for the one in
   * force then.
   */
  async #save(
    make: () => InstanceDefinition,
    isDone: (present: InstanceDefinition) => boolean = () => false,
  ): Promise<InstanceDefinition> {
    return untilTaken(async (round) => {
      const definition = make();
      const { template, id } = definition;
      const before = this.#deps.active.find(template, id);
      if (round > 1 && before !== undefined && isDone(before)) return before;
      // A function is not stored and lasts as long as the program. It replaces a stored instance with its id, and vice versa.
      const wasFunction = before !== undefined && isFunction(before);
      try {
        if (isFunction(definition)) {
          if (!wasFunction) this.#changes.advance(await this.#deps.store.instances.delete(template, id));
          return definition;
        }
        const expected = wasFunction ? undefined : (before ?? null);
        if (this.#changes.advance(await this.#deps.store.instances.save(definition, expected)))
          return definition;
      } catch (thrown) {
        if (!hasCode(thrown, 'DUPLICATE_SERVER') || round === MAX_CHANGE_ROUNDS) throw thrown;
      }
      await this.#changes.forceReload(); // a row that was edited by hand has changed without the revision
      return undefined;
    });
  }

  /**
   * Resolves when the instance is healthy, has stopped or is missing its program, after `waitMs` at the latest. At once for
   * an instance of another node: one that any node may run is first waited for until a node runs it.
   */
  async #untilHealthy(made: Instance, waitMs: number): Promise<Instance> {
    const { leasedPrograms, fleet, clock } = this.#deps;
    const { serverId } = made;
    const late$ = timer$(clock, waitMs);
    const isWaited = runsAnywhere(made.definition) && leasedPrograms !== undefined;
    const untilMs = clock.now() + waitMs;
    if (isWaited) await firstValueFrom(race(leasedPrograms.placed(serverId), late$));
    const instance = isWaited ? (fleet.findByServerId(serverId) ?? made) : made;
    if (!(instance instanceof InstanceRef)) return instance;
    const settled$ = instance.until$(
      () => instance.state === 'healthy' || instance.state === 'stopped' || isMissing(instance.reason),
    );
    await firstValueFrom(race(settled$, timer$(clock, Math.max(0, untilMs - clock.now()))));
    return instance;
  }
}

/**
 * True for the instance of the same entry of a file or of sync. Not for a locked one, which is registered again: the file or the
 * source has the secrets that cannot be read from the database.
 */
export function isSameEntry(
  { source, fingerprint, locked }: InstanceDefinition,
  options: Pick<RegisterOptions, 'source' | 'fingerprint'>,
): boolean {
  const isEntry = options.fingerprint !== undefined && options.source === source;
  return isEntry && options.fingerprint === fingerprint && locked === undefined;
}

// The registry in force on this node: instances in the fleet, functions, settings of templates.

import { isDeepStrictEqual } from 'node:util';
import type { Fleet } from '../actors/fleet/fleet.ts';
import type { Instance } from '../actors/fleet/template-group.ts';
import { policyOf, type TemplatePolicy } from '../balancing/policy.ts';
import { changedTemplate, type StoredTemplate, type TemplateChange } from '../balancing/stored-template.ts';
import { registryFull } from '../domain/errors/registry-errors.ts';
import { validationFailed } from '../domain/errors/request-errors.ts';
import { eventOf, type GatewayEvent } from '../domain/events/events.ts';
import type { InstanceAuth } from '../domain/instances/account-connection.ts';
import type { InstanceDefinition, TemplateAuth } from '../domain/instances/instance.ts';
import { isFunction, runsProgram } from '../domain/instances/transport-kinds.ts';
import { definedFields } from '../domain/json/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { keptBytes } from '../domain/memory/held-bytes.ts';
import { runsAnywhere } from '../domain/nodes/nodes.ts';
import type { RegistrationContext } from '../domain/registration/registration.ts';
import { counted } from '../domain/text.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { ActiveDefinitions } from '../templates/active-definitions.ts';
import type { TemplateDefinition } from '../templates/definition.ts';
import type { InProcessHandler } from '../transports/open-options.ts';
import type { LeasedPrograms } from './leased-programs.ts';
import type { ToolApprovals } from './pinned/tool-approvals.ts';
import { REGISTRY_BOUNDS, refuseOverflow } from './registry-bounds.ts';

export interface ActiveRegistryDeps {
  readonly fleet: Fleet;
  readonly policy: TemplatePolicy;
  /** Functions of in-process instances, by server id; the transport looks them up here. */
  readonly handlers: Map<string, InProcessHandler>;
  readonly emit: (event: GatewayEvent) => void;
  /** The definitions of templates, which exist without an instance, too. */
  readonly definitions: ActiveDefinitions;
  readonly clock: Clock;
  /** The approved tools of pinned templates. */
  readonly approvals: Pick<ToolApprovals, 'setPinned'>;
  /** Runs the programs that any node may run, where there are other nodes. Default: they run here. */
  readonly leasedPrograms?: LeasedPrograms | undefined;
  /** This node among those that share the store. Default: this registry alone uses it. */
  readonly node?: RegistryNode | undefined;
}

/** A node, as its registry sees it. */
interface RegistryNode extends Pick<RegistrationContext, 'isAnyDefault' | 'hasEphemeralNodes'> {
  /** Programs of other nodes are listed and never started. Default: every program runs here. */
  readonly id?: string | undefined;
  /**
   * The number of this worker of the node: the first one runs its programs, the others use them there. Default:
   * there are no workers.
   */
  readonly worker?: number | undefined;
}

interface StoredRegistry {
  readonly templates: readonly StoredTemplate[];
  readonly instances: readonly InstanceDefinition[];
  /** The stored definitions of templates. Default: none. */
  readonly definitions?: readonly TemplateDefinition[];
}

/**
 * The part of the registry that calls see. Applies stored changes of any node and emits their events. It is synchronous
 * and uses no store (registry.ts).
 */
export class ActiveRegistry {
  readonly #deps: ActiveRegistryDeps;
  readonly #settings = new Map<string, StoredTemplate>();
  readonly #activeDefinitions: ActiveDefinitions;
  /** Memory of the large definitions. */
  #instanceBytes = 0;

  constructor(deps: ActiveRegistryDeps) {
    this.#deps = deps;
    this.#activeDefinitions = deps.definitions;
    for (const name of this.#activeDefinitions.folderIds()) this.#setPolicy({ name, loadBalancer: {} });
  }

  /** Throws TEMPLATE_NOT_FOUND when nothing was registered or set under the name. */
  settings(template: string): StoredTemplate {
    this.#deps.fleet.templates.existingGroup(template);
    return this.#settings.get(template) ?? { name: template, loadBalancer: {} };
  }

  /**
   * The setting for an instance of the template without an own `auth`; that of the template goes before that of its definition.
   */
  authOf(template: string): TemplateAuth | undefined {
    return this.#settings.get(template)?.auth ?? this.#activeDefinitions.get(template)?.auth;
  }

  /** True when the template exists and the change has no effect on it. */
  hasSettings(change: TemplateChange): boolean {
    const { name } = change;
    const present = this.#settings.get(name);
    const after = changedTemplate(present ?? { loadBalancer: {} }, change);
    return this.#deps.fleet.templates.has(name) && isDeepStrictEqual(after, present);
  }

  /** Throws REGISTRY_FULL when these instances, which are new, replaced or changed, would exceed a limit. */
  refuseOverflow(...definitions: readonly InstanceDefinition[]): void {
    const { fleet } = this.#deps;
    const added = definitions.filter(({ template, id }) => fleet.find(template, id) === undefined);
    const bytes = definitions.reduce((sum, definition) => sum + this.#moreBytes(definition), 0);
    const held = { count: fleet.size, bytes: this.#instanceBytes };
    refuseOverflow(REGISTRY_BOUNDS.instances, held, { count: added.length, bytes });
    if (fleet.templates.isFullFor(...added.map(({ template }) => template)))
      throw registryFull('templates', LIMITS.templates);
  }

  /** The memory that the definition takes above that of the one in force. */
  #moreBytes(definition: InstanceDefinition): number {
    const before = this.find(definition.template, definition.id);
    return keptBytes(definition) - (before === undefined ? 0 : keptBytes(before));
  }

  find(template: string, id: string): InstanceDefinition | undefined {
    return this.#deps.fleet.find(template, id)?.definition;
  }

  usesAccounts(template: string, endpoint: string, who: InstanceAuth['who']): boolean {
    const isUsed = ({ definition }: Instance) =>
      definition.endpoint === endpoint && definition.auth?.who === who;
    return (
      this.#deps.fleet.templates.has(template) &&
      this.#deps.fleet.templates.group(template).instances.some(isUsed)
    );
  }

  instanceDefinitions(): InstanceDefinition[] {
    const { fleet } = this.#deps;
    return fleet.templates.names
      .flatMap((template) => fleet.templates.group(template).instances)
      .map(({ definition }) => definition);
  }

  /** False for a program, or a container, of another node. True for a program that any node may run. */
  belongsHere(definition: InstanceDefinition): boolean {
    const { id } = this.#deps.node ?? {};
    if (id === undefined || definition.nodeId === undefined || runsAnywhere(definition)) return true;
    return definition.nodeId === id;
  }

  #runsHere(definition: InstanceDefinition): boolean {
    const { worker = 1 } = this.#deps.node ?? {};
    return this.belongsHere(definition) && (worker === 1 || !runsProgram(definition));
  }

  applySettings(settings: StoredTemplate): void {
    this.#settings.set(settings.name, settings);
    this.#setPolicy(settings);
    this.#deps.emit({ type: 'template.changed', atMs: this.#deps.clock.wall(), template: settings.name });
  }

  /** The settings of the template go before those of its definition, and these before the defaults of the gateway. */
  #setPolicy({ name, loadBalancer }: StoredTemplate): void {
    const { fleet, policy } = this.#deps;
    const defined = this.#activeDefinitions.get(name)?.load_balancer;
    const own = policyOf({ ...defined, ...loadBalancer }, policy);
    this.#deps.approvals.setPinned(name, own.approve === 'pinned');
    fleet.templates.setPolicy(name, own);
  }

  /** Throws VALIDATION_ERROR while the template has instances, TEMPLATE_NOT_FOUND. */
  refuseNonEmpty(template: string): void {
    this.#deps.fleet.templates.existingGroup(template);
    const { length: count } = this.#deps.fleet.templates.group(template).instances;
    if (count === 0) return;
    const msg = `${counted(count, 'instance')} must be deregistered first`;
    throw validationFailed([{ loc: ['path', 'template'], msg, type: 'value_error' }]);
  }

  /** A template with a definition remains, with the settings of the definition. */
  deleteTemplate(template: string): void {
    const { fleet } = this.#deps;
    this.#settings.delete(template);
    if (this.#activeDefinitions.has(template)) this.#setPolicy({ name: template, loadBalancer: {} });
    else {
      this.#deps.approvals.setPinned(template, false);
      fleet.templates.delete(template);
    }
    this.#deps.emit({ type: 'template.changed', atMs: this.#deps.clock.wall(), template });
  }

  /**
   * Puts a stored definition in force: the template exists from now on. Running programs keep the settings with which they
   * started.
   */
  putDefinition(definition: TemplateDefinition): void {
    this.#activeDefinitions.put(definition);
    this.#definitionChanged(definition.id);
  }

  /** A template with instances or settings of its own remains. */
  deleteDefinition(template: string): void {
    const { fleet } = this.#deps;
    this.#activeDefinitions.delete(template);
    const remains = this.#activeDefinitions.has(template) || this.#settings.has(template);
    if (!remains && fleet.templates.group(template).byId.size === 0) this.deleteTemplate(template);
    else this.#definitionChanged(template);
  }

  /** True for a template that exists, and has no instance, no definition and no settings. */
  isUnused(template: string): boolean {
    const { fleet } = this.#deps;
    const { name: _, loadBalancer = {}, ...others } = this.#settings.get(template) ?? {};
    const isEmpty = Object.keys({ ...loadBalancer, ...definedFields(others) }).length === 0;
    const hasNothing = isEmpty && !this.#activeDefinitions.has(template);
    return hasNothing && fleet.templates.has(template) && fleet.templates.group(template).byId.size === 0;
  }

  #definitionChanged(template: string): void {
    this.#setPolicy(this.#settings.get(template) ?? { name: template, loadBalancer: {} });
    this.#deps.emit({ type: 'template.changed', atMs: this.#deps.clock.wall(), template });
  }

  /** Starts the instance; only lists one of another node, or whose secrets cannot be read. Replaces one with the same id. */
  start(definition: InstanceDefinition, handler?: InProcessHandler): Instance {
    const { fleet, handlers } = this.#deps;
    const { template, id, serverId } = definition;
    const replaced = this.find(template, id) !== undefined;
    const more = this.#moreBytes(definition);
    if (handler === undefined) handlers.delete(serverId);
    else handlers.set(serverId, handler);
    this.#deps.emit({ type: 'instance.registered', ...eventOf(this.#deps.clock, definition), replaced });
    const leasedPrograms = runsAnywhere(definition) ? this.#deps.leasedPrograms : undefined;
    const isHere =
      leasedPrograms === undefined ? this.#runsHere(definition) : leasedPrograms.runsHere(definition);
    const instance =
      isHere && definition.locked === undefined
        ? fleet.add(definition)
        : fleet.addElsewhere(definition, leasedPrograms && (() => leasedPrograms.reasonOf(serverId)));
    this.#instanceBytes += more;
    leasedPrograms?.changed();
    return instance;
  }

  /** Starts a new instance, or applies the change of one that exists. */
  put(definition: InstanceDefinition): Instance {
    const { template, id } = definition;
    const before = this.find(template, id);
    if (before === undefined) return this.start(definition);
    if (before !== definition) this.change(definition);
    return this.#deps.fleet.templates.group(template).instance(id);
  }

  /** Applies a change of an instance, which is opened again if it changes a field of the backend. */
  change(definition: InstanceDefinition): void {
    const { template, id, serverId } = definition;
    const before = this.find(template, id);
    const isSame = BACKEND.every((field) => isDeepStrictEqual(before?.[field], definition[field]));
    if (isSame) this.#update(definition);
    else this.start(definition, this.#deps.handlers.get(serverId));
  }

  #update(definition: InstanceDefinition): void {
    const instance = this.#deps.fleet.templates.group(definition.template).instance(definition.id);
    this.#instanceBytes += this.#moreBytes(definition);
    instance.change(definition);
    this.#deps.emit({ type: 'instance.changed', ...eventOf(this.#deps.clock, definition) });
  }

  /** Running calls may finish. Throws TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND. */
  remove(template: string, id: string): void {
    const { fleet, handlers } = this.#deps;
    const { definition } = fleet.templates.group(template).instance(id);
    handlers.delete(definition.serverId);
    this.#instanceBytes -= keptBytes(definition);
    void fleet.remove(template, id, LIMITS.drainMs);
    this.#deps.emit({ type: 'instance.deregistered', ...eventOf(this.#deps.clock, definition) });
  }

  /**
   * Applies the stored registry, one instance or template per step, so that the caller can spread thousands over several turns of
   * the event loop. Yields true after a step that has started an instance. No other change may come between the steps. Functions
   * of this program are in no store: they remain with their templates, and stored instances with their ids or server ids are left
   * out.
   */
  *apply({ templates, instances, definitions = [] }: StoredRegistry): Generator<boolean> {
    for (const definition of definitions) {
      const isSame = isDeepStrictEqual(definition, this.#activeDefinitions.stored(definition.id));
      if (!isSame) this.putDefinition(definition);
      yield false;
    }
    // A node may register an instance in a template that another node has just deleted.
    const settings = new Map<string, StoredTemplate>(
      instances.map(({ template: name }) => [name, { name, loadBalancer: {} }]),
    );
    for (const each of templates) settings.set(each.name, each);
    for (const each of settings.values()) {
      if (!isDeepStrictEqual(each, this.#settings.get(each.name))) this.applySettings(each);
      yield false;
    }
    const known = this.instanceDefinitions();
    const functions = known.filter(isFunction);
    const held = new Set(functions.flatMap((each) => [instanceKeyOf(each), each.serverId]));
    const wanted = instances.filter((each) => !held.has(instanceKeyOf(each)) && !held.has(each.serverId));
    const serverIds = new Map(wanted.map((each) => [instanceKeyOf(each), each.serverId]));
    for (const before of known) {
      const remains = serverIds.get(instanceKeyOf(before)) === before.serverId;
      if (!remains && !isFunction(before)) this.remove(before.template, before.id);
      yield false;
    }
    for (const after of wanted) {
      const before = this.find(after.template, after.id);
      if (before === undefined) this.start(after);
      else if (!isDeepStrictEqual(before, after)) this.change(after);
      yield before === undefined;
    }
    for (const name of [...this.#settings.keys()]) {
      if (!settings.has(name) && this.#deps.fleet.templates.group(name).byId.size === 0)
        this.deleteTemplate(name);
      yield false;
    }
    const defined = new Set(definitions.map(({ id }) => id));
    for (const id of this.#activeDefinitions.storedIds()) {
      if (!defined.has(id)) this.deleteDefinition(id);
      yield false;
    }
  }
}

/** The fields that cannot change during a session. */
const BACKEND = [
  'locked',
  'nodeId',
  'transport',
  'endpoint',
  'command',
  'args',
  'workingDir',
  'era',
  'force',
  'container',
  'env',
  'secretEnv',
  'headers',
  'auth',
] as const;

/** Unique, and no server id, because template names contain no slash. */
function instanceKeyOf({ template, id }: InstanceDefinition): string {
  return `${template}/${id}`;
}

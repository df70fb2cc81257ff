// What is registered as this node has it: instances in the fleet, functions, settings of templates. Puts what was stored
// into force and tells of it, whether it was stored here or elsewhere. It never waits and knows no store (registry.ts).

import { isDeepStrictEqual } from 'node:util';
import type { Fleet } from '../actors/fleet.ts';
import type { Member } from '../actors/instance-index.ts';
import { eventOf } from '../actors/instances/instance-events.ts';
import type { GatewayEvent } from '../domain/events.ts';
import type { InstanceDefinition } from '../domain/instance.ts';
import { LIMITS } from '../domain/limits.ts';
import type { BalancerPolicy } from '../domain/policy.ts';
import { registryFull } from '../domain/registry-errors.ts';
import { validationFailed } from '../domain/request-errors.ts';
import {
  changedSettings,
  type LoadBalancerChange,
  type LoadBalancerSettings,
  policyOf,
  type TemplateSettings,
} from '../domain/template.ts';
import type { InProcessHandler } from '../transports/transport.ts';
import { differences } from './differences.ts';

export interface ActiveRegistryDeps {
  readonly fleet: Fleet;
  readonly policy: BalancerPolicy;
  /** Functions of in-process instances, by server id; the transport looks them up here. */
  readonly handlers: Map<string, InProcessHandler>;
  readonly emit: (event: GatewayEvent) => void;
  /** Templates that are there whatever is stored: those that have a definition. Default: none. */
  readonly defined?: ReadonlySet<string> | undefined;
  /** This node: programs of others are listed and never started. Default: every program runs here. */
  readonly nodeId?: string | undefined;
}

/** Everything a store holds of the registry. */
export interface StoredRegistry {
  readonly templates: readonly TemplateSettings[];
  readonly instances: readonly InstanceDefinition[];
}

export class ActiveRegistry {
  readonly #deps: ActiveRegistryDeps;
  readonly #settings = new Map<string, LoadBalancerSettings>();
  #isLoading = false;

  constructor(deps: ActiveRegistryDeps) {
    this.#deps = deps;
    for (const template of deps.defined ?? []) deps.fleet.govern(template, deps.policy);
  }

  has(template: string): boolean {
    return this.#deps.fleet.has(template);
  }

  /** TEMPLATE_NOT_FOUND when nothing was registered or set under the name. */
  settings(template: string): TemplateSettings {
    this.#deps.fleet.groups.require(template);
    return { name: template, loadBalancer: this.#settings.get(template) ?? {} };
  }

  /** Whether the template is there and the change would change nothing about it. */
  hasSettings(template: string, change: LoadBalancerChange): boolean {
    const present = this.#settings.get(template);
    return this.has(template) && isDeepStrictEqual(changedSettings(present ?? {}, change), present);
  }

  /** REGISTRY_FULL when one more, under this name, would be one too many. */
  refuseOverflow(template: string, id: string): void {
    const { fleet } = this.#deps;
    if (fleet.size >= LIMITS.instances && fleet.find(template, id) === undefined)
      throw registryFull('instances', LIMITS.instances);
    if (fleet.groups.isFullFor(template)) throw registryFull('templates', LIMITS.templates);
  }

  find(template: string, id: string): InstanceDefinition | undefined {
    return this.#deps.fleet.find(template, id)?.definition;
  }

  /** TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND. */
  get(template: string, id: string): InstanceDefinition {
    return this.#deps.fleet.member(template, id).definition;
  }

  isServerIdTaken(serverId: string): boolean {
    return this.#deps.fleet.isServerIdTaken(serverId);
  }

  /** Every definition, template by template. */
  definitions(): InstanceDefinition[] {
    const { fleet } = this.#deps;
    return fleet.templates.flatMap((template) => fleet.members(template)).map(({ definition }) => definition);
  }

  /** False for the program of another node, and for one whose secrets cannot be read. */
  runsHere(definition: InstanceDefinition): boolean {
    const { nodeId } = this.#deps;
    if (definition.locked !== undefined) return false;
    return nodeId === undefined || definition.nodeId === undefined || definition.nodeId === nodeId;
  }

  govern(template: string, loadBalancer: LoadBalancerSettings): void {
    this.#settings.set(template, loadBalancer);
    this.#deps.fleet.govern(template, policyOf(loadBalancer, this.#deps.policy));
    this.#tell({ type: 'template.changed', atMs: Date.now(), template });
  }

  /** VALIDATION_ERROR while something is registered under the name, TEMPLATE_NOT_FOUND. */
  refuseHeld(template: string): void {
    this.#deps.fleet.groups.require(template);
    const { length: count } = this.#deps.fleet.members(template);
    if (count === 0) return;
    const msg =
      count === 1
        ? '1 instance is registered: deregister it'
        : `${count} instances are registered: deregister them`;
    throw validationFailed([{ loc: ['path', 'template'], msg: `${msg} first`, type: 'value_error' }]);
  }

  /** The template is there no more; one that has a definition is as if nobody had set anything. */
  forget(template: string): void {
    const { fleet, policy, defined } = this.#deps;
    this.#settings.delete(template);
    if (defined?.has(template)) fleet.govern(template, policy);
    else fleet.groups.delete(template);
    this.#tell({ type: 'template.changed', atMs: Date.now(), template });
  }

  /** Starts the instance, or lists it when another node runs it. One with the same id leaves behind it. */
  start(definition: InstanceDefinition, handler?: InProcessHandler): Member {
    const { fleet, handlers } = this.#deps;
    const { template, id, serverId } = definition;
    const replaced = this.find(template, id) !== undefined;
    if (handler === undefined) handlers.delete(serverId);
    else handlers.set(serverId, handler);
    this.#tell({ type: 'instance.registered', ...eventOf(definition), replaced });
    return this.runsHere(definition) ? fleet.add(definition) : fleet.addForeign(definition);
  }

  /** Puts other words about the same backend into force. */
  amend(definition: InstanceDefinition): void {
    this.#deps.fleet.member(definition.template, definition.id).change(definition);
    this.#tell({ type: 'instance.changed', ...eventOf(definition) });
  }

  /** Takes an instance out; its running calls drain behind. TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND. */
  drop(template: string, id: string): void {
    const { fleet, handlers } = this.#deps;
    const definition = this.get(template, id);
    handlers.delete(definition.serverId);
    void fleet.remove(template, id, LIMITS.drainMs);
    this.#tell({ type: 'instance.deregistered', ...eventOf(definition) });
  }

  /** Becomes what is stored. Functions stay, and so do templates that have any. */
  takeIn({ templates, instances }: StoredRegistry): void {
    for (const { name, loadBalancer } of templates)
      if (!isDeepStrictEqual(loadBalancer, this.#settings.get(name))) this.govern(name, loadBalancer);
    for (const { template } of instances) if (!this.has(template)) this.govern(template, {});
    const { gone, added, replaced, changed } = differences(this.definitions(), instances);
    for (const { template, id } of gone) this.drop(template, id);
    for (const definition of [...added, ...replaced]) this.start(definition);
    for (const definition of changed) this.amend(definition);
    const left = new Set(templates.map(({ name }) => name));
    for (const name of [...this.#settings.keys()])
      if (!left.has(name) && this.#deps.fleet.members(name).length === 0) this.forget(name);
  }

  /** `takeIn` at the start: what was registered before is no news. */
  load(stored: StoredRegistry): void {
    this.#isLoading = true;
    try {
      this.takeIn(stored);
    } finally {
      this.#isLoading = false;
    }
  }

  #tell(event: GatewayEvent): void {
    if (!this.#isLoading) this.#deps.emit(event);
  }
}

// What is registered: templates with their settings, instances with their definitions. Keeps store and fleet in step:
// first it is durable, then it runs. Changes happen one after the other; reading needs no waiting.

import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { filter, firstValueFrom, race, timer } from 'rxjs';
import type { Fleet } from './actors/fleet.ts';
import { factOf } from './actors/instance-facts.ts';
import type { InstanceRef } from './actors/instance-ref.ts';
import { duplicateServer, endpointNotAllowed, shuttingDown } from './domain/errors.ts';
import type { GatewayEvent } from './domain/events.ts';
import type { InstanceDefinition, InstanceInput, InstanceSource } from './domain/instance.ts';
import { LIMITS } from './domain/limits.ts';
import type { BalancerPolicy } from './domain/policy.ts';
import { checkedWeight, defineInstance } from './domain/registration.ts';
import { type LoadBalancerSettings, policyOf, type TemplateSettings } from './domain/template.ts';
import type { Store } from './persistence/store.ts';
import { type AddressCheck, deniedAddress } from './transports/network-guard.ts';
import type { InProcessHandler } from './transports/transport.ts';

export interface RegisterOptions {
  /** Who registers. Default `api`. */
  readonly source?: InstanceSource;
  /** Hash of the file entry, with source `file`. */
  readonly fingerprint?: string;
  /** The function that is the instance: it is neither stored nor restored. */
  readonly handler?: InProcessHandler;
  /** Settings for the template, laid over those it has. */
  readonly loadBalancer?: LoadBalancerSettings;
  /** Longest wait for the instance to become healthy, in ms. Default 0. It stays registered when it does not. */
  readonly waitMs?: number;
}

export interface Registration {
  readonly definition: InstanceDefinition;
  /** True when an instance with the same id was there. */
  readonly replaced: boolean;
}

export interface RegistryParts {
  readonly store: Store;
  readonly fleet: Fleet;
  readonly policy: BalancerPolicy;
  /** Functions of in-process instances, by server id; the transport looks them up here. */
  readonly handlers: Map<string, InProcessHandler>;
  readonly emit: (event: GatewayEvent) => void;
  /** Which addresses no endpoint may name. Default: none. */
  readonly isDenied?: AddressCheck;
}

export class Registry {
  readonly #parts: RegistryParts;
  readonly #settings = new Map<string, LoadBalancerSettings>();
  /** The change that runs now; the next one waits for it. */
  #changing: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(parts: RegistryParts) {
    this.#parts = parts;
  }

  /** Starts everything that the store holds. */
  async load(): Promise<void> {
    const { store, fleet } = this.#parts;
    for (const { name, loadBalancer } of await store.listTemplates()) this.#govern(name, loadBalancer);
    for (const definition of await store.listInstances()) {
      if (!fleet.has(definition.template)) this.#govern(definition.template, {});
      fleet.add(definition);
    }
  }

  /** TEMPLATE_NOT_FOUND when nothing was ever registered or set under the name. */
  settings(template: string): TemplateSettings {
    this.#parts.fleet.group(template);
    return { name: template, loadBalancer: this.#settings.get(template) ?? {} };
  }

  /**
   * Stores an instance and starts it; one with the same id in the template is replaced in place. DUPLICATE_SERVER when
   * a file entry would replace what did not come from a file, ENDPOINT_NOT_ALLOWED for an address that is denied.
   */
  async register(
    template: string,
    input: InstanceInput,
    options: RegisterOptions = {},
  ): Promise<Registration> {
    const { replaced, ref } = await this.#change(async () => {
      const { store, fleet } = this.#parts;
      const definition = this.#define(template, input, options);
      const { id, source } = definition;
      const existing = fleet.find(template, id)?.definition;
      if (source === 'file' && existing !== undefined && existing.source !== 'file')
        throw duplicateServer(id);
      const replaced = existing !== undefined;
      await this.#settle(template, options.loadBalancer ?? {});
      await store.deleteTombstone(template, id);
      await this.#keep(definition, options.handler);
      this.#parts.emit({ type: 'instance.registered', ...factOf(definition), replaced });
      return { ref: fleet.add(definition), replaced };
    });
    if (options.waitMs) await untilHealthy(ref, options.waitMs);
    return { definition: ref.definition, replaced };
  }

  /**
   * Takes an instance out of the pool and out of the store; its running calls drain behind. One that came from a
   * file leaves a tombstone, so that the next import does not bring it back. TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND.
   */
  deregister(template: string, id: string): Promise<void> {
    return this.#change(async () => {
      const { fingerprint } = this.#parts.fleet.get(template, id).definition;
      // Before the deletion: alone it changes nothing, but a deletion without it would not last.
      if (fingerprint !== undefined) await this.#parts.store.saveTombstone({ template, id, fingerprint });
      await this.#remove(template, id);
    });
  }

  /** Takes out an instance that is in the file no more. False when meanwhile it is gone, or not the file's. */
  withdraw(template: string, id: string): Promise<boolean> {
    return this.#change(async () => {
      if (this.find(template, id)?.source !== 'file') return false;
      await this.#remove(template, id);
      return true;
    });
  }

  /** Changes weight or metadata while the instance goes on. */
  changeInstance(
    template: string,
    id: string,
    change: { readonly weight?: number; readonly metadata?: Readonly<Record<string, unknown>> },
  ): Promise<InstanceDefinition> {
    return this.#change(async () => {
      const ref = this.#parts.fleet.get(template, id);
      if (change.weight !== undefined) checkedWeight(change.weight, ['body', 'weight']);
      const definition = { ...ref.definition, ...change, updatedAt: new Date().toISOString() };
      if (definition.transport !== 'in-process') await this.#parts.store.saveInstance(definition);
      ref.change(definition);
      this.#parts.emit({ type: 'instance.changed', ...factOf(ref) });
      return definition;
    });
  }

  find(template: string, id: string): InstanceDefinition | undefined {
    return this.#parts.fleet.find(template, id)?.definition;
  }

  /** Every definition, template by template. */
  definitions(): InstanceDefinition[] {
    return this.#parts.fleet.all().map(({ definition }) => definition);
  }

  /** True when this very entry was deleted through the API. */
  async isKeptAway(template: string, id: string, fingerprint: string): Promise<boolean> {
    const tombstones = await this.#parts.store.listTombstones();
    return tombstones.some(
      (one) => one.template === template && one.id === id && one.fingerprint === fingerprint,
    );
  }

  /** Makes sure a template exists, with these settings laid over those it has. */
  settle(template: string, settings: LoadBalancerSettings): Promise<void> {
    return this.#change(() => this.#settle(template, settings));
  }

  /** Lays settings over those of a template. TEMPLATE_NOT_FOUND. */
  changeTemplate(template: string, change: LoadBalancerSettings): Promise<TemplateSettings> {
    return this.#change(async () => {
      this.#parts.fleet.group(template);
      await this.#settle(template, change);
      return this.settings(template);
    });
  }

  /** Refuses changes from now on; resolves when those before are done, or have failed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#changing;
  }

  async #change<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw shuttingDown();
    const changed = this.#changing.then(work);
    this.#changing = changed.catch(() => undefined); // its caller hears of it; the next change is not its victim
    return changed;
  }

  #define(template: string, input: InstanceInput, options: RegisterOptions): InstanceDefinition {
    const { fleet } = this.#parts;
    const definition = defineInstance(template, input, {
      now: new Date().toISOString(),
      source: options.source ?? 'api',
      isInProcess: options.handler !== undefined,
      find: (id) => this.find(template, id),
      isServerIdTaken: (serverId) => fleet.isServerIdTaken(serverId),
      randomHex: () => randomBytes(4).toString('hex'),
    });
    this.#refuseDenied(definition);
    return options.fingerprint === undefined
      ? definition
      : { ...definition, fingerprint: options.fingerprint };
  }

  /** For early news: the guard of connections holds for names, too. */
  #refuseDenied({ endpoint }: InstanceDefinition): void {
    const { isDenied } = this.#parts;
    if (endpoint === undefined || isDenied === undefined) return;
    const address = deniedAddress(endpoint, isDenied);
    if (address !== undefined) throw endpointNotAllowed(`The address ${address} lies in a denied network.`);
  }

  /** A function is kept for as long as the program runs; anything else is stored. Either takes the other's place. */
  async #keep(definition: InstanceDefinition, handler: InProcessHandler | undefined): Promise<void> {
    const { store, handlers } = this.#parts;
    if (handler === undefined) {
      await store.saveInstance(definition);
      handlers.delete(definition.serverId);
    } else {
      await store.deleteInstance(definition.template, definition.id);
      handlers.set(definition.serverId, handler);
    }
  }

  async #remove(template: string, id: string): Promise<void> {
    const { store, fleet, handlers, emit } = this.#parts;
    await store.deleteInstance(template, id);
    const ref = fleet.get(template, id);
    handlers.delete(ref.serverId);
    void fleet.remove(template, id, LIMITS.drainMs);
    emit({ type: 'instance.deregistered', ...factOf(ref) });
  }

  async #settle(template: string, change: LoadBalancerSettings): Promise<void> {
    const { store, fleet, emit } = this.#parts;
    const before = this.#settings.get(template);
    const loadBalancer = { ...before, ...change };
    if (fleet.has(template) && isDeepStrictEqual(loadBalancer, before)) return;
    await store.saveTemplate({ name: template, loadBalancer });
    this.#govern(template, loadBalancer);
    emit({ type: 'template.changed', atMs: Date.now(), template });
  }

  #govern(template: string, loadBalancer: LoadBalancerSettings): void {
    this.#settings.set(template, loadBalancer);
    this.#parts.fleet.govern(template, policyOf(loadBalancer, this.#parts.policy));
  }
}

/** Resolves when the instance is healthy, has stopped, or the time is over. */
async function untilHealthy(ref: InstanceRef, waitMs: number): Promise<void> {
  const settled$ = ref.state$.pipe(filter((state) => state === 'healthy' || state === 'stopped'));
  await firstValueFrom(race(settled$, timer(waitMs)));
}

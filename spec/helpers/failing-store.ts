// A store in memory whose methods fail or take their time when the spec says so. Several of them over one memory are
// several nodes on one database.

import { setImmediate as turn } from 'node:timers/promises';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import type { TemplateSettings } from '../../src/domain/template.ts';
import { MemoryStore } from '../../src/persistence/memory-store.ts';
import type { Store, Tombstone } from '../../src/persistence/store.ts';

export type StoreMethod = Exclude<keyof Store, 'kind' | 'accounts' | 'settings' | 'audit'>;

export class FailingStore implements Store {
  readonly kind = 'memory';
  /** Methods that reject, with what `failure` makes of their name. */
  readonly failing = new Set<StoreMethod>();
  failure: (method: StoreMethod) => Error = (method) => new Error(method);
  /** True: what fails has happened all the same, only its answer was lost. */
  losesAnswers = false;
  /** Methods in the order in which they were called. */
  readonly calls: StoreMethod[] = [];
  /** Turns of the event loop that every method takes; a function may draw them. */
  turns = () => 0;
  /** A method that never answers. */
  hanging: StoreMethod | undefined;
  readonly accounts: Store['accounts'];
  readonly settings: Store['settings'];
  readonly audit: Store['audit'];
  readonly #store: MemoryStore;

  constructor(store = new MemoryStore()) {
    this.#store = store;
    this.accounts = store.accounts;
    this.settings = store.settings;
    this.audit = store.audit;
  }

  listTemplates(): Promise<TemplateSettings[]> {
    return this.#run('listTemplates', () => this.#store.listTemplates());
  }
  saveTemplate(settings: TemplateSettings, atRevision?: number): Promise<boolean> {
    return this.#run('saveTemplate', () => this.#store.saveTemplate(settings, atRevision));
  }
  deleteTemplate(name: string): Promise<boolean> {
    return this.#run('deleteTemplate', () => this.#store.deleteTemplate(name));
  }
  listInstances(): Promise<InstanceDefinition[]> {
    return this.#run('listInstances', () => this.#store.listInstances());
  }
  saveInstance(definition: InstanceDefinition, atRevision?: number): Promise<boolean> {
    return this.#run('saveInstance', () => this.#store.saveInstance(definition, atRevision));
  }
  deleteInstance(template: string, id: string): Promise<boolean> {
    return this.#run('deleteInstance', () => this.#store.deleteInstance(template, id));
  }
  findTombstone(template: string, id: string): Promise<string | undefined> {
    return this.#run('findTombstone', () => this.#store.findTombstone(template, id));
  }
  saveTombstone(tombstone: Tombstone): Promise<void> {
    return this.#run('saveTombstone', () => this.#store.saveTombstone(tombstone));
  }
  deleteTombstone(template: string, id: string): Promise<void> {
    return this.#run('deleteTombstone', () => this.#store.deleteTombstone(template, id));
  }
  revision(): Promise<number> {
    return this.#run('revision', () => this.#store.revision());
  }
  ping(): Promise<void> {
    return this.#run('ping', () => this.#store.ping());
  }
  close(): Promise<void> {
    return this.#run('close', () => this.#store.close());
  }

  async #run<T>(method: StoreMethod, work: () => Promise<T>): Promise<T> {
    this.calls.push(method);
    for (let left = this.turns(); left > 0; left -= 1) await turn();
    if (this.hanging === method) await new Promise(() => {});
    const hasFailed = this.failing.has(method); // asked before: what is lost is the answer to this very question
    if (hasFailed && !this.losesAnswers) throw this.failure(method);
    const answer = await work();
    if (hasFailed) throw this.failure(method);
    return answer;
  }
}

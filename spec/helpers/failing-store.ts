// A store in memory whose methods fail or take their time when the spec says so.

import { setImmediate as turn } from 'node:timers/promises';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import type { TemplateSettings } from '../../src/domain/template.ts';
import { MemoryStore } from '../../src/persistence/memory-store.ts';
import type { Store, Tombstone } from '../../src/persistence/store.ts';

export type StoreMethod = Exclude<keyof Store, 'kind'>;

export class FailingStore implements Store {
  readonly kind = 'memory';
  /** Methods that reject with an error of their name. */
  readonly failing = new Set<StoreMethod>();
  /** Methods in the order in which they were called. */
  readonly calls: StoreMethod[] = [];
  /** Turns of the event loop that every method takes; a function may draw them. */
  turns = () => 0;
  /** A method that never answers. */
  hanging: StoreMethod | undefined;
  readonly #store = new MemoryStore();

  listTemplates(): Promise<TemplateSettings[]> {
    return this.#run('listTemplates', () => this.#store.listTemplates());
  }
  saveTemplate(settings: TemplateSettings): Promise<void> {
    return this.#run('saveTemplate', () => this.#store.saveTemplate(settings));
  }
  listInstances(): Promise<InstanceDefinition[]> {
    return this.#run('listInstances', () => this.#store.listInstances());
  }
  saveInstance(definition: InstanceDefinition): Promise<void> {
    return this.#run('saveInstance', () => this.#store.saveInstance(definition));
  }
  deleteInstance(template: string, id: string): Promise<boolean> {
    return this.#run('deleteInstance', () => this.#store.deleteInstance(template, id));
  }
  listTombstones(): Promise<Tombstone[]> {
    return this.#run('listTombstones', () => this.#store.listTombstones());
  }
  saveTombstone(tombstone: Tombstone): Promise<void> {
    return this.#run('saveTombstone', () => this.#store.saveTombstone(tombstone));
  }
  deleteTombstone(template: string, id: string): Promise<void> {
    return this.#run('deleteTombstone', () => this.#store.deleteTombstone(template, id));
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
    if (this.failing.has(method)) throw new Error(method);
    return work();
  }
}

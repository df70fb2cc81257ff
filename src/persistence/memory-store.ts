// The store without a database: what it holds is gone when the process ends.
// It keeps and hands out copies, like a database would, so that nobody changes a stored value by accident.

import type { InstanceDefinition } from '../domain/instance.ts';
import type { TemplateSettings } from '../domain/template.ts';
import type { Store, Tombstone } from './store.ts';

/** A Store in memory. Lists are in the order of the first saving; no method ever rejects. */
export class MemoryStore implements Store {
  readonly kind = 'memory';
  readonly #templates = new Map<string, TemplateSettings>();
  readonly #instances = new Map<string, InstanceDefinition>();
  readonly #tombstones = new Map<string, Tombstone>();

  async listTemplates(): Promise<TemplateSettings[]> {
    return copiesOf(this.#templates);
  }

  async saveTemplate(settings: TemplateSettings): Promise<void> {
    this.#templates.set(settings.name, structuredClone(settings));
  }

  async listInstances(): Promise<InstanceDefinition[]> {
    return copiesOf(this.#instances);
  }

  async saveInstance(definition: InstanceDefinition): Promise<void> {
    this.#instances.set(keyOf(definition.template, definition.id), structuredClone(definition));
  }

  async deleteInstance(template: string, id: string): Promise<boolean> {
    return this.#instances.delete(keyOf(template, id));
  }

  async listTombstones(): Promise<Tombstone[]> {
    return copiesOf(this.#tombstones);
  }

  async saveTombstone(tombstone: Tombstone): Promise<void> {
    this.#tombstones.set(keyOf(tombstone.template, tombstone.id), structuredClone(tombstone));
  }

  async deleteTombstone(template: string, id: string): Promise<void> {
    this.#tombstones.delete(keyOf(template, id));
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {}
}

function copiesOf<T>(values: ReadonlyMap<string, T>): T[] {
  return structuredClone([...values.values()]);
}

/** Unique, because no template name holds a slash. */
function keyOf(template: string, id: string): string {
  return `${template}/${id}`;
}

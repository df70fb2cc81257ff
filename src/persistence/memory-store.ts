// The store without a database: what it holds is gone when the process ends.
// It keeps and hands out copies, like a database would, so that nobody changes a stored value by accident.

import type { AuditEntry } from '../domain/account.ts';
import type { InstanceDefinition } from '../domain/instance.ts';
import { configIncomplete, duplicateServer } from '../domain/registry-errors.ts';
import type { TemplateSettings } from '../domain/template.ts';
import { MemoryAccounts } from './memory-accounts.ts';
import type { AuditStore, SettingStore, Store, Tombstone } from './store.ts';

/** A Store in memory. Lists are in the order of the first saving; it always answers. */
export class MemoryStore implements Store {
  readonly kind = 'memory';
  readonly #templates = new Map<string, TemplateSettings>();
  readonly #instances = new Map<string, InstanceDefinition>();
  readonly #tombstones = new Map<string, Tombstone>();
  #revision = 0;
  readonly accounts = new MemoryAccounts(() => this.#changed());
  readonly settings: SettingStore = memorySettings();
  readonly audit: AuditStore = memoryAudit();

  async listTemplates(): Promise<TemplateSettings[]> {
    return copiesOf(this.#templates);
  }

  async saveTemplate(settings: TemplateSettings): Promise<void> {
    this.#templates.set(settings.name, structuredClone(settings));
    this.#changed();
  }

  async deleteTemplate(name: string): Promise<boolean> {
    const existed = this.#templates.delete(name);
    if (existed) this.#changed();
    return existed;
  }

  async listInstances(): Promise<InstanceDefinition[]> {
    return copiesOf(this.#instances);
  }

  async saveInstance(definition: InstanceDefinition): Promise<void> {
    if (definition.locked !== undefined) throw configIncomplete(definition.locked);
    const key = keyOf(definition.template, definition.id);
    for (const [otherKey, { serverId }] of this.#instances)
      if (otherKey !== key && serverId === definition.serverId) throw duplicateServer(serverId);
    this.#instances.set(key, structuredClone(definition));
    this.#changed();
  }

  async deleteInstance(template: string, id: string): Promise<boolean> {
    const existed = this.#instances.delete(keyOf(template, id));
    if (existed) this.#changed();
    return existed;
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

  async revision(): Promise<number> {
    return this.#revision;
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {}

  #changed(): void {
    this.#revision += 1;
  }
}

function memorySettings(): SettingStore {
  const values = new Map<string, string>();
  return {
    read: async (name) => values.get(name),
    ensure: async (name, value) => {
      if (!values.has(name)) values.set(name, value);
      return values.get(name) ?? value;
    },
    exchange: async (name, before, after) => {
      if (values.get(name) !== before) return false;
      if (after === undefined) values.delete(name);
      else values.set(name, after);
      return true;
    },
  };
}

function memoryAudit(): AuditStore {
  let entries: readonly AuditEntry[] = [];
  return {
    append: async (added) => {
      entries = [...entries, ...structuredClone(added)];
    },
    list: async ({ limit, before }) => {
      const newestFirst = entries.toSorted((one, other) => (one.id < other.id ? 1 : -1));
      const older = before === undefined ? newestFirst : newestFirst.filter(({ id }) => id < before);
      return structuredClone(older.slice(0, limit));
    },
    trim: async (keep) => {
      const oldestFirst = entries.toSorted((one, other) => (one.id < other.id ? -1 : 1));
      entries = oldestFirst.slice(Math.max(0, entries.length - keep));
    },
  };
}

function copiesOf<T>(values: ReadonlyMap<string, T>): T[] {
  return structuredClone([...values.values()]);
}

/** Unique, because no template name holds a slash. */
function keyOf(template: string, id: string): string {
  return `${template}/${id}`;
}

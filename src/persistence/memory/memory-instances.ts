// The templates and instances of the store without a database.

import { isDeepStrictEqual } from 'node:util';
import { changedTemplate, type StoredTemplate } from '../../balancing/stored-template.ts';
import { configIncomplete, duplicateServer } from '../../domain/errors/registry-errors.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import type { InstanceStore, TemplateStore } from '../store.ts';

export function memoryTemplates(
  instances: ReadonlyMap<string, InstanceDefinition>,
  changed: () => number,
): TemplateStore {
  const stored = new Map<string, StoredTemplate>();
  return {
    list: async () => structuredClone([...stored.values()]),
    save: async (change) => {
      const before = stored.get(change.name) ?? { loadBalancer: {} };
      stored.set(change.name, changedTemplate(before, structuredClone(change)));
      return changed();
    },
    delete: async (name) => {
      if ([...instances.values()].some(({ template }) => template === name)) return undefined;
      return stored.delete(name) ? changed() : undefined;
    },
  };
}

/** The stores of templates and instances. `instances` and `tombstones`: by `entryKey`. */
export function memoryInstances(
  instances: Map<string, InstanceDefinition>,
  tombstones: Map<string, string>,
  changed: (count?: number) => number,
): InstanceStore {
  const saveMany: InstanceStore['saveMany'] = async (saves) => {
    const next = new Map(instances);
    const keys = new Map(Array.from(next, ([key, { serverId }]) => [serverId, key]));
    for (const { definition, before } of saves) {
      const { template, id, serverId, locked } = definition;
      if (locked !== undefined) throw configIncomplete(locked);
      const key = entryKey(template, id);
      const present = next.get(key);
      if (before !== undefined && !isDeepStrictEqual(present ?? null, before)) return undefined;
      if ((keys.get(serverId) ?? key) !== key) throw duplicateServer(serverId);
      if (present !== undefined) keys.delete(present.serverId);
      keys.set(serverId, key);
      next.set(key, structuredClone(definition));
    }
    for (const { template, id } of saves.map(({ definition }) => definition)) {
      const key = entryKey(template, id);
      const saved = next.get(key);
      if (saved !== undefined) instances.set(key, saved);
      tombstones.delete(key);
    }
    return changed(saves.length);
  };
  return {
    list: async () => structuredClone([...instances.values()]),
    save: (definition, before) => saveMany([{ definition, before }]),
    saveMany,
    delete: async (template, id, fingerprint) => {
      const key = entryKey(template, id);
      if (!instances.delete(key)) return undefined;
      if (fingerprint !== undefined) tombstones.set(key, fingerprint);
      return changed();
    },
    deleteMany: async (template, ids, source) => {
      const keys = ids.map((id) => entryKey(template, id));
      if (!keys.every((key) => instances.get(key)?.source === source)) return undefined;
      for (const key of keys) instances.delete(key);
      return changed();
    },
    findTombstones: async (template, ids) =>
      new Map(
        ids.flatMap((id) => {
          const fingerprint = tombstones.get(entryKey(template, id));
          return fingerprint === undefined ? [] : [[id, fingerprint]];
        }),
      ),
  };
}

/** The key of an instance. It is unique, because template names contain no slash. */
export function entryKey(template: string, id: string): string {
  return `${template}/${id}`;
}

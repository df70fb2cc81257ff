// What the gateway asks of its registry's memory. Values are domain types; nobody above knows what holds them.
// Runtime facts (health, counts) are never stored.

import type { InstanceDefinition } from '../domain/instance.ts';
import type { TemplateSettings } from '../domain/template.ts';

/** Every method rejects with DATABASE_UNAVAILABLE only when a database is underneath; the memory store never does. */
export interface Store {
  /** `memory` or the name of the database. */
  readonly kind: string;
  listTemplates(): Promise<TemplateSettings[]>;
  /** Inserts or replaces by name. */
  saveTemplate(settings: TemplateSettings): Promise<void>;
  listInstances(): Promise<InstanceDefinition[]>;
  /** Inserts or replaces by template and id; resolves when it is durable. */
  saveInstance(definition: InstanceDefinition): Promise<void>;
  /** False when there was none. */
  deleteInstance(template: string, id: string): Promise<boolean>;
  /** Fingerprints of file entries that were deleted through the API and stay deleted until the entry changes. */
  listTombstones(): Promise<Tombstone[]>;
  saveTombstone(tombstone: Tombstone): Promise<void>;
  deleteTombstone(template: string, id: string): Promise<void>;
  /** Resolves when the store answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

export interface Tombstone {
  readonly template: string;
  readonly id: string;
  /** Hash of the file entry at the time of the deletion. */
  readonly fingerprint: string;
}

// The active template definitions: those of the folder, which stay as they are while the process runs, and those
// of the database, which any node changes. Where both have an id, the folder's counts. Source: ADR 235.

import type { TemplateDefinition, TemplateRules } from './definition.ts';

/** A definition that counts. An embedding program may name only its rules, without a description. */
export type ActiveDefinition = TemplateRules & Partial<TemplateDefinition>;

/** Finds a definition in the folder first, then among those of the database. */
export class ActiveDefinitions {
  readonly #folder: ReadonlyMap<string, ActiveDefinition>;
  readonly #stored = new Map<string, TemplateDefinition>();

  constructor(folder: readonly ActiveDefinition[] = []) {
    this.#folder = new Map(folder.map((definition) => [definition.id, definition]));
  }

  get(id: string): ActiveDefinition | undefined {
    return this.#folder.get(id) ?? this.#stored.get(id);
  }

  has(id: string): boolean {
    return this.#folder.has(id) || this.#stored.has(id);
  }

  isInFolder(id: string): boolean {
    return this.#folder.has(id);
  }

  /** The definition in the database, also where that of the folder counts. */
  stored(id: string): TemplateDefinition | undefined {
    return this.#stored.get(id);
  }

  /** The ids of the definitions of the folder. */
  folderIds(): string[] {
    return [...this.#folder.keys()];
  }

  storedIds(): string[] {
    return [...this.#stored.keys()];
  }

  put(definition: TemplateDefinition): void {
    this.#stored.set(definition.id, definition);
  }

  delete(id: string): void {
    this.#stored.delete(id);
  }
}

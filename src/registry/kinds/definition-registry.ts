// The template definitions that are kept in the store: checks and stores them, and puts them in force on this
// node; other nodes read them with the registry. Source: ADR 235.

import { isDeepStrictEqual } from 'node:util';
import type { Fleet } from '../../actors/fleet/fleet.ts';
import { GatewayError } from '../../domain/errors/errors.ts';
import { restOfChange } from '../../domain/errors/gateway-errors.ts';
import { duplicateView, noStoredDefinition, registryFull } from '../../domain/errors/registry-errors.ts';
import { validationFailed } from '../../domain/errors/request-errors.ts';
import { isSecretName } from '../../domain/instances/secret-names.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { keptBytes } from '../../domain/memory/held-bytes.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { Store, StoredDefinition } from '../../persistence/store.ts';
import type { ActiveDefinitions } from '../../templates/active-definitions.ts';
import { configFieldsOf } from '../../templates/config-schema.ts';
import { definitionOf, SCRATCH, type TemplateDefinition, TemplateError } from '../../templates/definition.ts';
import { instanceInputOf } from '../../templates/launch.ts';
import type { ActiveRegistry } from '../active-registry.ts';
import { checkName } from '../checked-input.ts';
import type { ToolApprovals } from '../pinned/tool-approvals.ts';
import { type Protection, refuseDenied, refuseExposing } from '../refusals.ts';
import { REGISTRY_BOUNDS, refuseOverflow } from '../registry-bounds.ts';
import type { RegistryChanges } from '../registry-changes.ts';

/** Characters of one stored definition as JSON. */
const MAX_CHARACTERS = 256 * 1024;

interface DefinitionRegistryDeps extends Protection {
  readonly store: Pick<Store, 'definitions' | 'templates'>;
  readonly fleet: Pick<Fleet, 'templates'>;
  readonly definitions: ActiveDefinitions;
  readonly active: Pick<ActiveRegistry, 'putDefinition' | 'deleteDefinition' | 'deleteTemplate' | 'isUnused'>;
  /** True for the name of a view. */
  readonly isView: (name: string) => boolean;
  readonly scheduler: TaskScheduler;
  /** The approved tools of pinned templates. */
  readonly approvals: Pick<ToolApprovals, 'isPinned' | 'settle' | 'settled'>;
}

/** The part of the registry for definitions of templates; it has those of the store in memory. */
export class DefinitionRegistry {
  readonly #deps: DefinitionRegistryDeps;
  readonly #changes: RegistryChanges;
  readonly #definitions: ActiveDefinitions;
  /** The memory that each takes; a count visits all of its values. */
  readonly #bytes = new WeakMap<TemplateDefinition, number>();

  constructor(deps: DefinitionRegistryDeps, changes: RegistryChanges) {
    this.#deps = deps;
    this.#changes = changes;
    this.#definitions = deps.definitions;
  }

  /** The definitions in the store, without the ids of rows whose form is that of another version of this program. */
  async read(): Promise<TemplateDefinition[]> {
    const { store, scheduler } = this.#deps;
    const read: TemplateDefinition[] = [];
    await scheduler.each(await store.definitions.list(), (row) => {
      const definition = this.#definitionIn(row);
      if (definition !== undefined) read.push(definition);
    });
    return read;
  }

  #definitionIn({ id, value }: StoredDefinition): TemplateDefinition | undefined {
    const present = this.#definitions.stored(id);
    // The check compiles its schema, which takes much longer than the comparison.
    if (isDeepStrictEqual(present, value)) return present;
    try {
      return definitionOf(value, id);
    } catch (thrown) {
      if (thrown instanceof TemplateError) return undefined;
      throw thrown;
    }
  }

  /** The stored definition. Throws TEMPLATE_NOT_FOUND. */
  get(template: string): TemplateDefinition {
    const stored = this.#definitions.stored(template);
    if (stored === undefined) throw noStoredDefinition(template);
    return stored;
  }

  /**
   * The definition that `put` would store. Throws VALIDATION_ERROR, also for a value of a secret; ENDPOINT_NOT_ALLOWED,
   * COMMAND_NOT_ALLOWED.
   */
  async check(template: string, written: unknown): Promise<TemplateDefinition> {
    checkName(template);
    const definition = checkedDefinition(template, written);
    const { command = '', args = [], env_vars: env = {}, endpoint } = instanceInputOf(definition, SCRATCH);
    refuseDenied(endpoint, this.#deps);
    if (command !== '') await refuseExposing({ command, args, env }, this.#deps);
    return definition;
  }

  /**
   * Stores a definition, in the form of a template.json, and puts it in force. Resolves with false when it
   * replaced one. Errors of `check`; DUPLICATE_TEMPLATE when a folder defines the template; REGISTRY_FULL.
   */
  async put(template: string, written: unknown): Promise<boolean> {
    const definition = await this.check(template, written);
    const { store, fleet, active, approvals } = this.#deps;
    const isNew = await this.#changes.run(async () => {
      await this.#changes.reload();
      if (this.#definitions.isInFolder(template)) throw duplicateTemplate(template);
      if (this.#deps.isView(template)) throw duplicateView(template, 'view');
      const before = this.#definitions.stored(template);
      if (isDeepStrictEqual(before, definition)) return false;
      if (fleet.templates.isFullFor(template)) throw registryFull('templates', LIMITS.templates);
      this.#refuseOverflow(definition, before);
      await this.#settling(template, async () => {
        this.#changes.advance(
          await store.definitions.save({ id: template, value: definition as JsonObject }),
        );
        active.putDefinition(definition);
      });
      return before === undefined;
    });
    await approvals.settled(template);
    return isNew;
  }

  /** Deletes a stored definition; a template with instances or settings remains. Throws TEMPLATE_NOT_FOUND. */
  async delete(template: string): Promise<void> {
    const { store, active, approvals } = this.#deps;
    await this.#changes.run(async () => {
      await this.#changes.reload();
      this.get(template);
      await this.#settling(template, async () => {
        this.#changes.advance(await store.definitions.delete(template));
        active.deleteDefinition(template);
      });
      // The empty template that the registration of its instances left behind is deleted.
      if (!active.isUnused(template)) return;
      this.#changes.advance(await restOfChange(store.templates.delete(template)));
      active.deleteTemplate(template);
    });
    await approvals.settled(template);
  }

  #refuseOverflow(definition: TemplateDefinition, before: TemplateDefinition | undefined): void {
    const all = this.#definitions.storedIds().map((id) => this.#bytesOf(this.#definitions.stored(id)));
    const held = { count: all.length, bytes: all.reduce((sum, bytes) => sum + bytes, 0) };
    const count = before === undefined ? 1 : 0;
    const bytes = this.#bytesOf(definition) - this.#bytesOf(before);
    refuseOverflow(REGISTRY_BOUNDS.definitions, held, { count, bytes });
  }

  #bytesOf(definition: TemplateDefinition | undefined): number {
    if (definition === undefined) return 0;
    const bytes = this.#bytes.get(definition) ?? keptBytes(definition);
    this.#bytes.set(definition, bytes);
    return bytes;
  }

  /** Makes a change that may pin the template, or release it. */
  async #settling(template: string, change: () => Promise<void>): Promise<void> {
    const { fleet, approvals } = this.#deps;
    const wasPinned = approvals.isPinned(template);
    await change();
    const instances = fleet.templates.has(template) ? fleet.templates.group(template).refs : [];
    await restOfChange(approvals.settle(template, wasPinned, instances));
  }
}

function duplicateTemplate(template: string): GatewayError {
  const where = `The template "${template}" has a definition in the folder of templates, which counts`;
  return new GatewayError('DUPLICATE_TEMPLATE', `${where}: choose another id.`);
}

/** The definition, checked by itself. Throws VALIDATION_ERROR. */
export function checkedDefinition(template: string, written: unknown): TemplateDefinition {
  const issues = (messages: readonly string[]) =>
    validationFailed(messages.map((msg) => ({ loc: ['body'], msg, type: 'value_error' })));
  try {
    const definition = definitionOf(written, template);
    const faults = [
      ...(definition.id === template ? [] : [`id: is "${definition.id}", but the path names "${template}"`]),
      ...secretsIn(definition),
    ];
    const { length } = JSON.stringify(definition);
    if (length > MAX_CHARACTERS) faults.push(`a stored definition may have ${MAX_CHARACTERS} characters`);
    if (faults.length > 0) throw issues(faults);
    return definition;
  } catch (thrown) {
    if (thrown instanceof TemplateError) throw issues(thrown.issues);
    throw thrown;
  }
}

/** Definitions are stored as they are and shown to admins: secrets belong to instances, which are encrypted. */
function secretsIn(definition: TemplateDefinition): string[] {
  const settings = configFieldsOf(definition);
  const declared = settings.flatMap(({ isSecret, variable }) => (isSecret ? (variable ?? []) : []));
  const variables = Object.entries(definition.environment ?? {}).flatMap(([name, value]) =>
    value !== '' && (declared.includes(name) || isSecretName(name))
      ? [`environment.${name}: a secret has no value in a definition: each instance gets its own`]
      : [],
  );
  const defaults = settings.flatMap(({ name, isSecret, schema }) =>
    isSecret && typeof schema === 'object' && schema !== null && 'default' in schema
      ? [`config_schema.properties.${name}.default: a secret has no default in a stored definition`]
      : [],
  );
  return [...variables, ...defaults];
}

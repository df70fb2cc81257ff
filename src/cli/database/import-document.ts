// Takes a registry document into a database, as if each of its entries had been registered through the API: they stay
// when the document is gone. Gateways that run on the database hear of it by its revision.

import { asGatewayError } from '../../domain/errors.ts';
import type { InstanceDefinition } from '../../domain/instance.ts';
import { defineInstance } from '../../domain/registration.ts';
import { commandExposes } from '../../domain/registry-errors.ts';
import type { RegistryContents } from '../../persistence/registry-file.ts';
import type { Store } from '../../persistence/store.ts';
import { exposureOf, type ProtectedPath, protectedDatabase } from '../../templates/command-exposure.ts';

/** Names are `template/id`. */
export interface DocumentImport {
  readonly added: readonly string[];
  /** There before, and different now. */
  readonly replaced: readonly string[];
  /** One line each, the document's own problems first. */
  readonly problems: readonly string[];
}

export interface ImportContext {
  /** The node that is to run the programs of the document. */
  readonly nodeId: string;
  /** ISO 8601. */
  readonly now: string;
  /** Where the gateway is started, as far as it is known: relative paths of commands start there. */
  readonly folder: string;
  /** What no command may be handed, besides the file of the store. */
  readonly protectedPaths: readonly ProtectedPath[];
}

/**
 * Saves the templates, their settings laid over those that are there, then the instances; one with the same id in its
 * template is replaced and keeps its server id. What cannot be used is a problem, not a failure. Rejects with
 * DATABASE_UNAVAILABLE; what was saved before stays.
 */
export async function importDocument(
  store: Store,
  contents: RegistryContents,
  context: ImportContext,
): Promise<DocumentImport> {
  const settings = new Map((await store.listTemplates()).map((each) => [each.name, each.loadBalancer]));
  for (const { name, loadBalancer } of contents.templates) {
    await store.saveTemplate({ name, loadBalancer: { ...settings.get(name), ...loadBalancer } });
    settings.set(name, loadBalancer);
  }
  const known = new Map((await store.listInstances()).map((each) => [keyOf(each), each]));
  const { file } = store;
  const protectedPaths = [...(file === undefined ? [] : protectedDatabase(file)), ...context.protectedPaths];
  const [added, replaced]: [string[], string[]] = [[], []];
  const problems = [...contents.problems];
  for (const { template, input } of contents.entries) {
    const name = `${template}/${input.id}`;
    try {
      const definition = defined(template, input, known, context);
      const exposure = await exposureOf(definition, protectedPaths, context.folder);
      if (exposure !== undefined) throw commandExposes(exposure);
      if (!settings.has(template)) await store.saveTemplate({ name: template, loadBalancer: {} });
      settings.set(template, settings.get(template) ?? {});
      await store.deleteTombstone(template, definition.id);
      await store.saveInstance(definition);
      (known.has(name) ? replaced : added).push(name);
      known.set(name, definition);
    } catch (thrown) {
      const error = asGatewayError(thrown);
      // Nothing that follows would fare better.
      if (error.code === 'DATABASE_UNAVAILABLE') throw error;
      problems.push(`${name}: ${error.message}`);
    }
  }
  return { added, replaced, problems };
}

function defined(
  template: string,
  input: RegistryContents['entries'][number]['input'],
  known: ReadonlyMap<string, InstanceDefinition>,
  context: ImportContext,
): InstanceDefinition {
  return defineInstance(template, input, {
    ...context,
    find: (id) => known.get(`${template}/${id}`),
    isServerIdTaken: (serverId) => [...known.values()].some((each) => each.serverId === serverId),
    randomHex: () => '00000000', // not asked for: entries of a document have ids
    source: 'api',
  });
}

function keyOf({ template, id }: InstanceDefinition): string {
  return `${template}/${id}`;
}

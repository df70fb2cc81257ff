// Exports a database as a registry document, the first shape of docs/guides/registry-file.md, and imports documents that
// registry/files/registry-file.ts has read.

import type { TemplateSettings } from '../../balancing/template-settings.ts';
import { asGatewayError } from '../../domain/errors/errors.ts';
import { commandExposes, duplicateView, registryFull } from '../../domain/errors/registry-errors.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { isStored } from '../../domain/instances/transport-kinds.ts';
import { definedFields, type JsonObject } from '../../domain/json/json.ts';
import { ANY_NODE, runsAnywhere } from '../../domain/nodes/nodes.ts';
import { defineInstance, withTemplateAuth } from '../../domain/registration/registration.ts';
import { NO_NAMES, type StoredView, type ViewDefinition } from '../../domain/views/view.ts';
import type { Store, StoredDefinition } from '../../persistence/store.ts';
import { escapePlaceholders } from '../../registry/files/entry-placeholders.ts';
import type { RegistryContents } from '../../registry/files/registry-file.ts';
import { checkedDefinition, MAX_DEFINITIONS } from '../../registry/kinds/definition-registry.ts';
import { exposureOf, type ProtectedPath, protectedDatabase } from '../../templates/command-exposure.ts';
import { SCRATCH } from '../../templates/definition.ts';
import { instanceInputOf } from '../../templates/launch.ts';

interface DocumentSection {
  readonly load_balancer?: TemplateSettings['loadBalancer'];
  readonly auth?: TemplateSettings['auth'];
  /** The instances, with the fields of a registration. */
  readonly instances: readonly Readonly<Record<string, unknown>>[];
}

interface ExportOptions {
  readonly withSecrets: boolean;
  readonly views?: readonly StoredView[];
  readonly definitions?: readonly StoredDefinition[];
}

/**
 * The document of these templates and instances, in the order of their names. Secrets are omitted, not
 * masked: an import would take a mask for a value. `withheld` names instances whose variables or headers were
 * omitted; `unreadable` has a line with the reason for each instance whose requested secrets cannot be read.
 */
export function registryDocument(
  templates: readonly TemplateSettings[],
  instances: readonly InstanceDefinition[],
  { withSecrets, views = [], definitions = [] }: ExportOptions,
) {
  const [withheld, unreadable]: [string[], string[]] = [[], []];
  const names = new Set([...templates.map(({ name }) => name), ...instances.map(({ template }) => template)]);
  const sections = [...names].sort().map((name): [string, DocumentSection] => {
    const { loadBalancer = {}, auth } = templates.find((each) => each.name === name) ?? {};
    const members = instances
      .filter((each) => each.template === name && isStored(each))
      // A sync finds such an instance again; on another machine its command would be another program.
      .filter(({ source }) => source !== 'sync')
      .toSorted((one, other) => (one.id < other.id ? -1 : 1));
    for (const each of members) {
      const hasSecret = each.auth?.clientSecret !== undefined || each.locked !== undefined;
      const hasSecrets = !isEmpty(each.env) || !isEmpty(each.headers) || hasSecret;
      if (!withSecrets && hasSecrets) withheld.push(`${name}/${each.id}`);
      if (withSecrets && each.locked !== undefined) unreadable.push(`${name}/${each.id}: ${each.locked}`);
    }
    const entries = members.map((each) => entryOf(each, withSecrets));
    const load_balancer = isEmpty(loadBalancer) ? undefined : loadBalancer;
    return [name, { ...definedFields({ load_balancer, auth }), instances: entries }];
  });
  const shown = views.map(({ definition: { id, ...others } }) => [id, others] as const);
  const defined = definitions.map(({ id, value: { id: _, ...others } }) => [id, others] as const);
  const document = {
    templates: Object.fromEntries(sections),
    ...(shown.length === 0 ? {} : { views: Object.fromEntries(shown) }),
    ...(defined.length === 0 ? {} : { definitions: Object.fromEntries(defined) }),
  };
  return { document, withheld, unreadable };
}

function entryOf(instance: InstanceDefinition, withSecrets: boolean): Readonly<Record<string, unknown>> {
  const { id, transport, endpoint, command, args, workingDir, era, force, env, headers, weight, metadata } =
    instance;
  return definedFields({
    id,
    server_id: instance.serverId === id ? undefined : instance.serverId,
    transport,
    endpoint: escaped(endpoint),
    command: escaped(command),
    // Always written with a command: without `args` an import would split the command into words.
    args: command === undefined ? undefined : args.map(escapePlaceholders),
    working_dir: escaped(workingDir),
    // An import makes it one of any node only without a working folder.
    node: runsAnywhere(instance) && workingDir !== undefined ? ANY_NODE : undefined,
    era,
    force,
    env_vars: withSecrets && !isEmpty(env) ? allEscaped(env) : undefined,
    secret_env_vars: instance.secretEnv,
    headers: withSecrets && !isEmpty(headers) ? allEscaped(headers) : undefined,
    auth: authOf(instance, withSecrets),
    weight,
    metadata: isEmpty(metadata) ? undefined : metadata,
  });
}

function authOf({ auth }: InstanceDefinition, withSecrets: boolean): object | undefined {
  if (auth === undefined) return undefined;
  const { who, clientId, clientSecret, scopes } = auth;
  return definedFields({
    mode: 'oauth',
    who,
    client_id: escaped(clientId),
    scopes,
    client_secret: withSecrets ? escaped(clientSecret) : undefined,
  });
}

function escaped(text: string | undefined): string | undefined {
  return text === undefined ? undefined : escapePlaceholders(text);
}

function allEscaped(texts: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, escapePlaceholders(text)]));
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0;
}

interface ImportContext {
  /** The node that will run programs of the document that are not for any. */
  readonly nodeId: string;
  /** Whether new programs may run on any node by default: see RegistrationContext. */
  readonly isAnyDefault?: boolean;
  readonly hasEphemeralNodes?: boolean;
  /** ISO 8601. */
  readonly now: string;
  /** The folder in which the gateway is probably started: relative paths of commands start there. */
  readonly folder: string;
  /** Paths that no command may get, in addition to the file of the store. */
  readonly protectedPaths: readonly ProtectedPath[];
}

/**
 * Saves the templates, merging their settings with the existing ones, then definitions, instances and views. An
 * instance with the id of an existing one in its template replaces it and keeps its server id; a new one gets the
 * server id of the export if it is free. An unusable part is a problem, not a failure. Rejects with
 * DATABASE_UNAVAILABLE; earlier saves stay. Names in the result are `template/id`, `definitions.<id>` and
 * `views.<id>`.
 */
export async function importDocument(store: Store, contents: RegistryContents, context: ImportContext) {
  const views = new Map((await store.views.list()).map((view) => [view.definition.id, view]));
  const [added, replaced]: [string[], string[]] = [[], []];
  const problems = [...contents.problems];
  const result = { added, replaced, problems };
  for (const settings of contents.templates)
    if (views.has(settings.name))
      problems.push(`templates.${settings.name}: ${duplicateView(settings.name, 'view').message}`);
    else await store.templates.save(settings);
  const templates = new Map((await store.templates.list()).map(({ name, auth }) => [name, auth]));
  const known = new Map((await store.instances.list()).map((each) => [`${each.template}/${each.id}`, each]));
  const { file } = store;
  const protectedPaths = [...(file === undefined ? [] : protectedDatabase(file)), ...context.protectedPaths];
  await importDefinitions(store, contents.definitions, { ...context, protectedPaths, views, result });
  const serverIds = new Set(Array.from(known.values(), ({ serverId }) => serverId));
  const isServerIdTaken = (serverId: string) => serverIds.has(serverId);
  for (const { template, input, serverId = '' } of contents.entries) {
    const name = `${template}/${input.id}`;
    const isOwn = [`${template}.${input.id}`, `${template}~${input.id}`].includes(serverId);
    const keepsServerId = isOwn && !known.has(name) && !isServerIdTaken(serverId);
    try {
      if (views.has(template)) throw duplicateView(template, 'view');
      const defined = defineInstance(template, withTemplateAuth(input, templates.get(template)), {
        ...context,
        find: (id) => known.get(`${template}/${id}`),
        isServerIdTaken,
        randomHex: () => '00000000', // not asked for: entries of a document have ids
      });
      const definition = keepsServerId ? { ...defined, serverId } : defined;
      const exposure = await exposureOf(definition, protectedPaths, { from: context.folder });
      if (exposure !== undefined) throw commandExposes(exposure.reason);
      if (!templates.has(template)) await store.templates.save({ name: template, loadBalancer: {} });
      templates.set(template, templates.get(template));
      await store.instances.save(definition);
      (known.has(name) ? replaced : added).push(name);
      known.set(name, definition);
      serverIds.add(definition.serverId);
    } catch (thrown) {
      const error = asGatewayError(thrown);
      // All further changes would fail, too.
      if (error.code === 'DATABASE_UNAVAILABLE') throw error;
      problems.push(`${name}: ${error.message}`);
    }
  }
  const defined = (await store.definitions.list()).map(({ id }) => id);
  const names = new Set([...templates.keys(), ...defined]);
  await importViews(store, contents.views, names, views, { now: context.now, result });
  return result;
}

interface ImportResult {
  readonly added: string[];
  readonly replaced: string[];
  readonly problems: string[];
}

/** Saves template definitions, which replace those with their ids. */
async function importDefinitions(
  store: Store,
  wanted: readonly StoredDefinition[],
  {
    folder,
    protectedPaths,
    views,
    result,
  }: Pick<ImportContext, 'folder' | 'protectedPaths'> & {
    readonly views: { has(name: string): boolean };
    readonly result: ImportResult;
  },
): Promise<void> {
  if (wanted.length === 0) return;
  const known = new Set((await store.definitions.list()).map(({ id }) => id));
  for (const { id, value } of wanted)
    try {
      if (views.has(id)) throw duplicateView(id, 'view');
      if (!known.has(id) && known.size >= MAX_DEFINITIONS)
        throw registryFull('stored definitions', MAX_DEFINITIONS);
      const definition = checkedDefinition(id, value);
      const { command = '', args = [], env_vars: env = {} } = instanceInputOf(definition, SCRATCH);
      const exposure =
        command === ''
          ? undefined
          : await exposureOf({ command, args, env }, protectedPaths, { from: folder });
      if (exposure !== undefined) throw commandExposes(exposure.reason);
      await store.definitions.save({ id, value: definition as JsonObject });
      (known.has(id) ? result.replaced : result.added).push(`definitions.${id}`);
      known.add(id);
    } catch (thrown) {
      const error = asGatewayError(thrown);
      if (error.code === 'DATABASE_UNAVAILABLE') throw error;
      result.problems.push(`definitions.${id}: ${error.message}`);
    }
}

/** Saves views, which replace those with their ids. */
async function importViews(
  store: Store,
  wanted: readonly ViewDefinition[],
  templates: { has(name: string): boolean },
  known: ReadonlyMap<string, StoredView>,
  { now, result }: { readonly now: string; readonly result: ImportResult },
): Promise<void> {
  for (const definition of wanted) {
    const { id } = definition;
    const before = known.get(id) ?? null;
    const { names } = before ?? { names: NO_NAMES };
    if (templates.has(id)) {
      result.problems.push(`views.${id}: ${duplicateView(id, 'template').message}`);
      continue;
    }
    await store.views.save({ definition, names, source: 'api', updatedAt: now }, before);
    (before === null ? result.added : result.replaced).push(`views.${id}`);
  }
}

// Exports a database as a registry document, the first shape of docs/guides/registry-file.md, and imports documents that
// registry/files/registry-file.ts has read.

import type { StoredTemplate } from '../../balancing/stored-template.ts';
import { asGatewayError } from '../../domain/errors/errors.ts';
import { commandExposes, duplicateView, registryFull } from '../../domain/errors/registry-errors.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { isFunction } from '../../domain/instances/transport-kinds.ts';
import { definedFields, type JsonObject } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { keptBytes } from '../../domain/memory/held-bytes.ts';
import { ANY_NODE, runsAnywhere } from '../../domain/nodes/nodes.ts';
import { defineInstance, withTemplateAuth } from '../../domain/registration/registration.ts';
import { NO_NAMES, type StoredView, type ViewDefinition } from '../../domain/views/view.ts';
import type { Store, StoredDefinition } from '../../persistence/store.ts';
import { escapePlaceholders } from '../../registry/files/entry-placeholders.ts';
import type { RegistryContents } from '../../registry/files/registry-file.ts';
import { checkedDefinition } from '../../registry/kinds/definition-registry.ts';
import { REGISTRY_BOUNDS, refuseOverflow, viewBytes } from '../../registry/registry-bounds.ts';
import { exposureOf, type ProtectedPath, protectedDatabase } from '../../templates/command-exposure.ts';
import { SCRATCH } from '../../templates/definition.ts';
import { instanceInputOf } from '../../templates/launch.ts';

interface DocumentSection {
  readonly load_balancer?: StoredTemplate['loadBalancer'];
  readonly auth?: StoredTemplate['auth'];
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
  templates: readonly StoredTemplate[],
  instances: readonly InstanceDefinition[],
  { withSecrets, views = [], definitions = [] }: ExportOptions,
) {
  const [withheld, unreadable]: [string[], string[]] = [[], []];
  const names = new Set([...templates.map(({ name }) => name), ...instances.map(({ template }) => template)]);
  const sections = [...names].sort().map((name): [string, DocumentSection] => {
    const { loadBalancer = {}, auth } = templates.find((each) => each.name === name) ?? {};
    const members = instances
      .filter((each) => each.template === name && !isFunction(each))
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
 * server id of the export if it is free. An unusable part is a problem, not a failure. Throws
 * DATABASE_UNAVAILABLE; earlier saves stay. Names in the result are `template/id`, `definitions.<id>` and
 * `views.<id>`; `stripped` are the replaced instances that had a variable, header or client secret which the document leaves out.
 */
export async function importDocument(store: Store, contents: RegistryContents, context: ImportContext) {
  const views = new Map((await store.views.list()).map((view) => [view.definition.id, view]));
  const [added, replaced, stripped]: [string[], string[], string[]] = [[], [], []];
  const problems = [...contents.problems];
  const result = { added, replaced, problems };
  const names = new TemplateNames(views);
  for (const { name } of await store.templates.list()) names.add(name);
  for (const { id } of await store.definitions.list()) names.add(id);
  for (const settings of contents.templates)
    await orProblem(result, `templates.${settings.name}`, async () => {
      names.admit(settings.name);
      await store.templates.save(settings);
    });
  const templates = new Map((await store.templates.list()).map(({ name, auth }) => [name, auth]));
  const known = new Map((await store.instances.list()).map((each) => [`${each.template}/${each.id}`, each]));
  const { file } = store;
  const protectedPaths = [...(file === undefined ? [] : protectedDatabase(file)), ...context.protectedPaths];
  await importDefinitions(store, contents.definitions, { ...context, protectedPaths, names, result });
  const serverIds = new Set(Array.from(known.values(), ({ serverId }) => serverId));
  const isServerIdTaken = (serverId: string) => serverIds.has(serverId);
  const bounds = new Bounds('instances', Array.from(known.values(), keptBytes));
  for (const { template, input, serverId = '' } of contents.entries) {
    const name = `${template}/${input.id}`;
    const isOwn = [`${template}.${input.id}`, `${template}~${input.id}`].includes(serverId);
    const keepsServerId = isOwn && !known.has(name) && !isServerIdTaken(serverId);
    await orProblem(result, name, async () => {
      const defined = defineInstance(template, withTemplateAuth(input, templates.get(template)), {
        ...context,
        find: (id) => known.get(`${template}/${id}`),
        isServerIdTaken,
        randomHex: () => '00000000', // not asked for: entries of a document have ids
      });
      const definition = keepsServerId ? { ...defined, serverId } : defined;
      const exposure = await exposureOf(definition, protectedPaths, { from: context.folder });
      if (exposure !== undefined) throw commandExposes(exposure.reason);
      const before = known.get(name);
      bounds.admit(keptBytes(definition), before && keptBytes(before));
      names.admit(template);
      if (!templates.has(template)) await store.templates.save({ name: template, loadBalancer: {} });
      templates.set(template, templates.get(template));
      await store.instances.save(definition);
      (before === undefined ? added : replaced).push(name);
      if (before !== undefined && lacksSecretOf(before, definition)) stripped.push(name);
      known.set(name, definition);
      serverIds.add(definition.serverId);
    });
  }
  await importViews(store, contents.views, { names, known: views, now: context.now, result });
  return { ...result, stripped };
}

/** True when a variable, a header or the client secret of `before` is missing in `after`. */
function lacksSecretOf(before: InstanceDefinition, after: InstanceDefinition): boolean {
  const isMissing = (of: 'env' | 'headers') =>
    Object.keys(before[of]).some((name) => !Object.hasOwn(after[of], name));
  const hadSecret = before.auth?.clientSecret !== undefined;
  return isMissing('env') || isMissing('headers') || (hadSecret && after.auth?.clientSecret === undefined);
}

interface ImportResult {
  readonly added: string[];
  readonly replaced: string[];
  readonly problems: string[];
}

/** Runs the import of one part. An error is a problem, unless all further changes would fail, too. */
async function orProblem({ problems }: ImportResult, name: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (thrown) {
    const error = asGatewayError(thrown);
    if (error.code === 'DATABASE_UNAVAILABLE') throw error;
    problems.push(`${name}: ${error.message}`);
  }
}

/** The names of the templates. Their number is bounded, and none is the name of a view. */
class TemplateNames {
  readonly #views: { has(id: string): boolean };
  readonly #names = new Set<string>();

  constructor(views: { has(id: string): boolean }) {
    this.#views = views;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  add(name: string): void {
    this.#names.add(name);
  }

  /** Throws DUPLICATE_VIEW, REGISTRY_FULL. */
  admit(name: string): void {
    if (this.#views.has(name)) throw duplicateView(name, 'view');
    if (!this.#names.has(name) && this.#names.size >= LIMITS.templates)
      throw registryFull('templates', LIMITS.templates);
    this.#names.add(name);
  }
}

/** Counts what the database has of one kind, within the bounds of a registry. */
class Bounds {
  readonly #kind: keyof typeof REGISTRY_BOUNDS;
  #count: number;
  #bytes: number;

  /** `present`: the bytes of each part that the database has. */
  constructor(kind: keyof typeof REGISTRY_BOUNDS, present: readonly number[]) {
    this.#kind = kind;
    this.#count = present.length;
    this.#bytes = present.reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Throws REGISTRY_FULL when a part of so many bytes would exceed a bound. `before`: those of the part that it replaces. */
  admit(bytes: number, before: number | undefined): void {
    const more = { count: before === undefined ? 1 : 0, bytes: bytes - (before ?? 0) };
    refuseOverflow(REGISTRY_BOUNDS[this.#kind], { count: this.#count, bytes: this.#bytes }, more);
    this.#count += more.count;
    this.#bytes += more.bytes;
  }
}

/** Saves template definitions, which replace those with their ids. */
async function importDefinitions(
  store: Store,
  wanted: readonly StoredDefinition[],
  {
    folder,
    protectedPaths,
    names,
    result,
  }: Pick<ImportContext, 'folder' | 'protectedPaths'> & {
    readonly names: TemplateNames;
    readonly result: ImportResult;
  },
): Promise<void> {
  if (wanted.length === 0) return;
  const known = new Map((await store.definitions.list()).map(({ id, value }) => [id, value]));
  const bounds = new Bounds('definitions', Array.from(known.values(), keptBytes));
  for (const { id, value } of wanted)
    await orProblem(result, `definitions.${id}`, async () => {
      const definition = checkedDefinition(id, value);
      const { command = '', args = [], env_vars: env = {} } = instanceInputOf(definition, SCRATCH);
      const exposure =
        command === ''
          ? undefined
          : await exposureOf({ command, args, env }, protectedPaths, { from: folder });
      if (exposure !== undefined) throw commandExposes(exposure.reason);
      const stored = definition as JsonObject;
      const before = known.get(id);
      bounds.admit(keptBytes(stored), before && keptBytes(before));
      names.admit(id);
      await store.definitions.save({ id, value: stored });
      (before === undefined ? result.added : result.replaced).push(`definitions.${id}`);
      known.set(id, stored);
    });
}

/** Saves views, which replace those with their ids. */
async function importViews(
  store: Store,
  wanted: readonly ViewDefinition[],
  {
    names: templates,
    known,
    now,
    result,
  }: {
    readonly names: TemplateNames;
    readonly known: ReadonlyMap<string, StoredView>;
    readonly now: string;
    readonly result: ImportResult;
  },
): Promise<void> {
  const bounds = new Bounds('views', Array.from(known.values(), viewBytes));
  for (const definition of wanted) {
    const { id } = definition;
    const before = known.get(id) ?? null;
    const { names } = before ?? { names: NO_NAMES };
    await orProblem(result, `views.${id}`, async () => {
      if (templates.has(id)) throw duplicateView(id, 'template');
      const view = { definition, names, source: 'api' as const, updatedAt: now };
      bounds.admit(viewBytes(view), before === null ? undefined : viewBytes(before));
      await store.views.save(view, before);
      (before === null ? result.added : result.replaced).push(`views.${id}`);
    });
  }
}

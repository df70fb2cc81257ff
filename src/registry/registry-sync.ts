// Synchronizes the registry with one origin of instances: the listing of a source, or a registry file. Instances
// of other origins, such as the API, are not changed. src/discovery/ lists the sources, registry/files/registry-file.ts
// reads the file, gateway/sync.ts decides when.

import { hash } from 'node:crypto';
import { asGatewayError, concernsAll, hasCode } from '../domain/errors/errors.ts';
import { databaseUnavailable } from '../domain/errors/gateway-errors.ts';
import type {
  FoundInstance,
  ImportReport,
  SkippedInstance,
  SourceListing,
  SyncedInstance,
  SyncOptions,
  SyncReport,
} from '../domain/instances/found-instances.ts';
import type { InstanceDefinition } from '../domain/instances/instance.ts';
import { definedFields } from '../domain/json/json.ts';
import { eachInGroups } from '../domain/time/task-groups.ts';
import { importViews } from './files/view-import.ts';
import { isSameEntry } from './kinds/instance-registry.ts';
import type { Registry } from './registry.ts';
import type { FileContents } from './registry-types.ts';

/** Synchronizes with the listing of a source. Throws DATABASE_UNAVAILABLE. */
export async function syncListing(
  registry: Registry,
  { origin, found, skipped }: SourceListing,
  rules: SyncOptions = {},
): Promise<SyncReport> {
  await registry.reloadForImport();
  const wanted = found.map((each) => ({ ...each, fingerprint: fingerprintOf(origin, each) }));
  const isOwn = (definition: InstanceDefinition) => cameFrom(origin, definition);
  return new Synchronization(registry, { source: 'sync', wanted, skipped, isOwn }, rules).run();
}

/** Applies a registry file. Throws VALIDATION_ERROR for invalid settings of a template, DATABASE_UNAVAILABLE, SHUTTING_DOWN. */
export async function importContents(
  registry: Registry,
  { templates, entries, views, isPartial = false }: FileContents,
  rules: SyncOptions = {},
): Promise<ImportReport> {
  await registry.reloadForImport();
  const { isDryRun = false, mayUse = () => true } = rules;
  const settings: string[] = [];
  for (const template of templates) {
    await registry.scheduler.turn();
    const { name, loadBalancer, auth } = template;
    if (!mayUse(name) || registry.views.find(name) !== undefined) continue; // its instances are skipped
    const isOther = !registry.active.hasSettings(template);
    try {
      if (!isDryRun) await registry.templates.ensure(name, loadBalancer, auth);
    } catch (thrown) {
      if (hasCode(thrown, 'DUPLICATE_VIEW')) continue; // since just now
      fail(thrown);
    }
    const isEmpty = Object.keys(loadBalancer).length === 0 && auth === undefined;
    if (isOther && !isEmpty) settings.push(name);
  }
  const wanted = entries.map((entry) => ({ ...entry, id: entry.input.id }));
  // An unreadable entry may describe any instance of the file.
  const isOwn = ({ source }: InstanceDefinition) => source === 'file' && !isPartial;
  const origin: Origin = { source: 'file', wanted, skipped: [], isOwn };
  const report = await new Synchronization(registry, origin, rules).run();
  // A caller with some templates only cannot judge views, which may be made of others.
  const areViewsWanted = views !== undefined && !isDryRun && rules.mayUse === undefined;
  const skipped = areViewsWanted ? await importViews(registry, views, isPartial).catch(fail) : [];
  return { ...report, settings, skipped: [...report.skipped, ...skipped] };
}

/** The instances that an origin has now. */
interface Origin {
  readonly source: 'file' | 'sync';
  readonly wanted: readonly WantedInstance[];
  readonly skipped: readonly SkippedInstance[];
  /** True for an instance that is removed unless it is wanted. */
  readonly isOwn: (definition: InstanceDefinition) => boolean;
}

interface WantedInstance extends Pick<FoundInstance, 'template' | 'id' | 'input' | 'container'> {
  readonly name?: string;
  /** The same fingerprint means that nothing changed. */
  readonly fingerprint: string;
}

/** Instances that one change of the store adds, changes or removes: few enough for one turn of the event loop. */
const SAVED_TOGETHER = 8;
const MIN_TOGETHER = 2;

/**
 * Adds new instances, changes others, removes missing ones. Skips one that cannot be registered, with the reason. Instances that
 * differ go to the store in groups; of a group with one that cannot be registered, each goes by itself.
 */
class Synchronization {
  readonly report = {
    added: [] as SyncedInstance[],
    changed: [] as SyncedInstance[],
    removed: [] as SyncedInstance[],
    unchanged: [] as SyncedInstance[],
    skipped: [] as SkippedInstance[],
  };
  readonly #registry: Registry;
  readonly #origin: Origin;
  readonly #isDryRun: boolean;
  readonly #mayUse: (template: string) => boolean;
  /** Wanted instances, by template and id. */
  readonly #wanted = new Set<string>();

  constructor(registry: Registry, origin: Origin, { isDryRun = false, mayUse = () => true }: SyncOptions) {
    this.#registry = registry;
    this.#origin = origin;
    this.#isDryRun = isDryRun;
    this.#mayUse = mayUse;
  }

  async run(): Promise<SyncReport> {
    const { skipped, wanted } = this.#origin;
    const { scheduler, active } = this.#registry;
    this.report.skipped = skipped.filter(({ template }) => this.#mayUse(template));
    const different: WantedInstance[] = [];
    await eachInGroups(
      wanted,
      (each) => {
        if (this.#mayUse(each.template) && this.#differs(each)) different.push(each);
      },
      scheduler,
    );
    await eachSavedGroup(this.#registry, different, (group) => this.#save(group));
    const missing: InstanceDefinition[] = [];
    await eachInGroups(
      active.instanceDefinitions(),
      (definition) => {
        if (this.#isMissing(definition)) missing.push(definition);
      },
      scheduler,
    );
    await eachSavedGroup(this.#registry, missing, (group) => this.#remove(group));
    return this.report;
  }

  /** True for an instance that has to be saved; the report has the others. */
  #differs(wanted: WantedInstance): boolean {
    const { template, id, name } = wanted;
    const { active } = this.#registry;
    const { source } = this.#origin;
    if (this.#wanted.has(`${template}/${id}`)) return this.#skip(wanted, `"${id}" occurs more than once`);
    this.#wanted.add(`${template}/${id}`);
    const existing = active.find(template, id);
    if (existing === undefined) return true;
    if (existing.source !== source)
      return this.#skip(wanted, `"${id}" is already registered by another source (${existing.source})`);
    if (this.#isInForce(wanted)) {
      this.report.unchanged.push({ template, id, ...definedFields({ name }) });
      return false;
    }
    if (source === 'sync' && !active.belongsHere(existing))
      return this.#skip(wanted, `"${id}" belongs to the node "${existing.nodeId}"`);
    return true;
  }

  /** True for an instance that is in force as it is wanted; another node with the same origin may have stored it meanwhile. */
  #isInForce({ template, id, fingerprint }: WantedInstance): boolean {
    const existing = this.#registry.active.find(template, id);
    return existing !== undefined && isSameEntry(existing, { source: this.#origin.source, fingerprint });
  }

  async #save(group: readonly WantedInstance[]): Promise<void> {
    const registry = this.#registry;
    const tombstones = await tombstonesOf(registry, group);
    const isBuried = ({ template, id, fingerprint }: WantedInstance) =>
      tombstones.get(`${template}/${id}`) === fingerprint;
    for (const each of group.filter(isBuried))
      this.#skip(each, 'it was deregistered, and is added again when it changes');
    const entries = group
      .filter((each) => !isBuried(each))
      .map((each) => ({ each, ...entryOf(registry, this.#origin.source, each) }));
    const areTogether =
      !this.#isDryRun &&
      entries.length > 1 &&
      (await registry.instances.registerTogether(entries).catch(fail));
    for (const { each, template, written, options, isNew } of entries) {
      try {
        if (this.#isDryRun) await registry.instances.draft(template, written, options);
        else if (!areTogether && !this.#isInForce(each))
          await registry.instances.register(template, written, options);
        const { id, name } = each;
        this.report[isNew ? 'added' : 'changed'].push({ template, id, ...definedFields({ name }) });
      } catch (thrown) {
        if (concernsAll(thrown)) fail(thrown);
        this.#skip(each, asGatewayError(thrown).message);
      }
    }
  }

  #isMissing(definition: InstanceDefinition): boolean {
    const { template, id } = definition;
    if (!this.#origin.isOwn(definition) || !this.#mayUse(template)) return false;
    return !this.#wanted.has(`${template}/${id}`) && this.#registry.active.belongsHere(definition);
  }

  async #remove(group: readonly InstanceDefinition[]): Promise<void> {
    for (const [template, ids] of idsByTemplate(group)) {
      const withdraw = () =>
        this.#registry.instances.withdraw(template, ids, this.#origin.source).catch(fail);
      const removed = this.#isDryRun ? ids : await withdraw();
      this.report.removed.push(...removed.map((id) => ({ template, id })));
    }
  }

  /** Reports why an instance is not saved. */
  #skip({ template, name, id }: WantedInstance, reason: string): false {
    this.report.skipped.push({ template, name: name ?? id, reason });
    return false;
  }
}

function entryOf(registry: Registry, source: 'file' | 'sync', wanted: WantedInstance) {
  const { template, id, input, fingerprint, container } = wanted;
  const isNew = registry.active.find(template, id) === undefined;
  return { template, written: { ...input, id }, options: { source, fingerprint, container }, isNew };
}

/** The tombstones by template and id. */
async function tombstonesOf(
  registry: Registry,
  wanted: readonly WantedInstance[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const [template, ids] of idsByTemplate(wanted))
    for (const [id, fingerprint] of await registry.instances.tombstones(template, ids))
      found.set(`${template}/${id}`, fingerprint);
  return found;
}

function idsByTemplate(all: readonly SyncedInstance[]): ReadonlyMap<string, readonly string[]> {
  const groups = Map.groupBy(all, ({ template }) => template);
  return new Map(Array.from(groups, ([template, group]) => [template, group.map(({ id }) => id)]));
}

/** Saves one group after the other, each in a turn of the event loop; the groups are smaller after long turns. */
async function eachSavedGroup<T>(
  { scheduler }: Pick<Registry, 'scheduler'>,
  all: readonly T[],
  work: (group: readonly T[]) => Promise<void>,
): Promise<void> {
  for (let start = 0; start < all.length; ) {
    await scheduler.turn();
    const end = start + Math.max(MIN_TOGETHER, Math.floor(SAVED_TOGETHER / scheduler.slowness));
    await work(all.slice(start, end));
    start = end;
  }
}

/** Throws the error; for DATABASE_UNAVAILABLE with the advice, because earlier changes were made. */
function fail(thrown: unknown): never {
  throw hasCode(thrown, 'DATABASE_UNAVAILABLE') ? databaseUnavailable(thrown, 'no', INCOMPLETE) : thrown;
}

const INCOMPLETE = 'The sync is incomplete: repeat it.';

/** True for an instance that sync added from this source, or from a part of it: `k8s:1a2b/` contains `k8s:1a2b/mcp-servers`. */
export function cameFrom(origin: string, { source, fingerprint = '' }: InstanceDefinition): boolean {
  return source === 'sync' && fingerprint.startsWith(origin.endsWith('/') ? origin : `${origin}#`);
}

function fingerprintOf(origin: string, { input, container, origin: part = origin }: FoundInstance): string {
  return `${part}#${hash('sha256', JSON.stringify([input, container?.id])).slice(0, 24)}`;
}

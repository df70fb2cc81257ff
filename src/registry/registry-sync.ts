// Synchronizes the registry with one origin of instances: the listing of a source, or a registry file. Instances of other origins,
// such as the API, are not changed. src/discovery/ lists the sources, persistence/registry-file.ts reads the file, gateway/sync.ts
// decides when.

import { hash } from 'node:crypto';
import type {
  Deployment,
  ImportReport,
  Listing,
  SkippedDeployment,
  SyncedInstance,
  SyncOptions,
  SyncReport,
} from '../domain/deployment.ts';
import { asGatewayError, databaseUnavailable, hasCode } from '../domain/errors.ts';
import type { InstanceDefinition } from '../domain/instance.ts';
import { definedFields } from '../domain/json.ts';
import type { Registry } from './registry.ts';
import type { FileContents } from './registry-types.ts';

/** Synchronizes with the listing of a source. DATABASE_UNAVAILABLE. */
export async function syncListing(
  registry: Registry,
  { origin, deployments, skipped }: Listing,
  rules: SyncOptions = {},
): Promise<SyncReport> {
  await registry.refresh();
  const wanted = deployments.map((each) => ({ ...each, fingerprint: fingerprintOf(origin, each) }));
  const isOwn = (definition: InstanceDefinition) => cameFrom(origin, definition);
  return synchronize(registry, { source: 'sync', wanted, skipped, isOwn }, rules);
}

/** The same with a registry file. VALIDATION_ERROR for invalid settings of a template, DATABASE_UNAVAILABLE. */
export async function importContents(
  registry: Registry,
  { templates, entries, isPartial = false }: FileContents,
  rules: SyncOptions = {},
): Promise<ImportReport> {
  await registry.refresh();
  const { isDryRun = false, mayUse = () => true } = rules;
  const settings: string[] = [];
  for (const { name, loadBalancer } of templates) {
    if (!mayUse(name)) continue;
    const isOther = !registry.active.hasSettings(name, loadBalancer);
    if (!isDryRun) await registry.ensureTemplate(name, loadBalancer).catch(fail);
    if (isOther && Object.keys(loadBalancer).length > 0) settings.push(name);
  }
  const wanted = entries.map((entry) => ({ ...entry, id: entry.input.id }));
  // An unreadable entry may describe any instance of the file.
  const isOwn = ({ source }: InstanceDefinition) => source === 'file' && !isPartial;
  const report = await synchronize(registry, { source: 'file', wanted, skipped: [], isOwn }, rules);
  return { ...report, settings };
}

/** The instances that an origin has now. */
interface Origin {
  readonly source: 'file' | 'sync';
  readonly wanted: readonly WantedInstance[];
  readonly skipped: readonly SkippedDeployment[];
  /** True for an instance that is removed unless it is wanted. */
  readonly isOwn: (definition: InstanceDefinition) => boolean;
}

interface WantedInstance extends Pick<Deployment, 'template' | 'id' | 'input' | 'container'> {
  readonly name?: string;
  /** The same fingerprint means that nothing changed. */
  readonly fingerprint: string;
}

/** Adds new instances, replaces changed ones, removes missing ones. Skips one that cannot be registered, with the reason. */
async function synchronize(
  registry: Registry,
  { source, wanted, skipped, isOwn }: Origin,
  { isDryRun = false, mayUse = () => true }: SyncOptions,
): Promise<SyncReport> {
  const report = {
    ...{ added: [] as SyncedInstance[], changed: [] as SyncedInstance[] },
    ...{ removed: [] as SyncedInstance[], unchanged: [] as SyncedInstance[] },
    skipped: skipped.filter(({ template }) => mayUse(template)) as SkippedDeployment[],
  };
  const present = new Set<string>();
  for (const { template, id, name, input, fingerprint, container } of wanted) {
    if (!mayUse(template)) continue;
    const instance = { template, id, ...definedFields({ name }) };
    const skip = (reason: string) => report.skipped.push({ template, name: name ?? id, reason });
    if (present.has(`${template}/${id}`)) {
      skip(`"${id}" occurs more than once`);
      continue;
    }
    present.add(`${template}/${id}`);
    const existing = registry.active.find(template, id);
    if (existing !== undefined && existing.source !== source) {
      skip(`"${id}" is already registered by another source (${existing.source})`);
      // A locked instance is registered again: the origin has the secrets that cannot be read from the database.
    } else if (existing?.fingerprint === fingerprint && existing.locked === undefined) {
      report.unchanged.push(instance);
    } else if (source === 'sync' && existing !== undefined && !registry.active.belongsHere(existing)) {
      skip(`"${id}" belongs to the node "${existing.nodeId}"`);
    } else {
      try {
        if (await registry.hasTombstone(template, id, fingerprint)) {
          skip('it was deregistered, and is added again when it changes');
          continue;
        }
        // Operators set weight and metadata of a deployment, which has none.
        const { weight, metadata } = source === 'sync' ? (existing ?? {}) : {};
        const written = { ...definedFields({ weight, metadata }), ...input, id };
        const options = { source, fingerprint, container };
        if (isDryRun) await registry.draft(template, written, options);
        else await registry.register(template, written, options);
        report[existing === undefined ? 'added' : 'changed'].push(instance);
      } catch (thrown) {
        // That concerns all of them, and ends by itself.
        if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) fail(thrown);
        skip(asGatewayError(thrown).message);
      }
    }
  }
  for (const definition of registry.active.definitions()) {
    const { template, id } = definition;
    if (!isOwn(definition) || !mayUse(template) || present.has(`${template}/${id}`)) continue;
    if (!registry.active.belongsHere(definition)) continue;
    if (isDryRun || (await registry.withdraw(template, id, source).catch(fail)))
      report.removed.push({ template, id });
  }
  return report;
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

function fingerprintOf(origin: string, { input, container, origin: part = origin }: Deployment): string {
  return `${part}#${hash('sha256', JSON.stringify([input, container?.id])).slice(0, 24)}`;
}

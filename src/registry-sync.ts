// Synchronizes the registry with one origin of instances: the listing of a source, or a registry file. Instances of other origins,
// such as the API, are not changed. src/discovery/ lists the sources, persistence/registry-file.ts reads the file, gateway/sync.ts
// decides when.

import { hash } from 'node:crypto';
import Type from 'typebox';
import type {
  Deployment,
  Listing,
  SkippedDeployment,
  SyncedInstance,
  SyncReport,
  SyncRules,
} from './domain/deployment.ts';
import { validationFailed } from './domain/error-catalogue.ts';
import { asGatewayError, databaseUnavailable, hasCode } from './domain/errors.ts';
import type { InstanceDefinition, InstanceInput } from './domain/instance.ts';
import { definedFields } from './domain/json.ts';
import { TemplateId } from './domain/template.ts';
import { compileShape } from './domain/validation.ts';
import type { FileContents, FileEntry, ImportReport } from './registry/registry-types.ts';
import type { Registry } from './registry.ts';

/**
 * Adds new instances, replaces changed ones, removes missing ones. Skips one that cannot be registered, with the reason.
 * DATABASE_UNAVAILABLE.
 */
export async function syncListing(
  registry: Registry,
  { origin, deployments, skipped }: Listing,
  { isDryRun = false, mayUse = () => true }: SyncRules = {},
): Promise<SyncReport> {
  const report = {
    ...{ added: [] as SyncedInstance[], changed: [] as SyncedInstance[] },
    ...{ removed: [] as SyncedInstance[], unchanged: [] as SyncedInstance[] },
    skipped: skipped.filter(({ template }) => mayUse(template)) as SkippedDeployment[],
  };
  await registry.refresh();
  const present = new Set<string>();
  for (const deployment of deployments) {
    const { template, id, name } = deployment;
    if (!mayUse(template)) continue;
    const skip = (reason: string) => report.skipped.push({ template, name, reason });
    if (present.has(`${template}/${id}`)) {
      skip(`"${id}" occurs more than once`);
      continue;
    }
    present.add(`${template}/${id}`);
    const fingerprint = fingerprintOf(origin, deployment);
    const existing = registry.active.find(template, id);
    if (existing !== undefined && existing.source !== 'sync') {
      skip(`"${id}" is already registered by another source (${existing.source})`);
    } else if (existing?.fingerprint === fingerprint && existing.locked === undefined) {
      report.unchanged.push({ template, id, name });
    } else if (existing !== undefined && !registry.active.runsHere(existing)) {
      skip(`"${id}" belongs to the node "${existing.nodeId}"`);
    } else {
      try {
        if (await registry.hasTombstone(template, id, fingerprint)) {
          skip('it was deregistered; a new deployment adds it again');
          continue;
        }
        const { container } = deployment;
        // Operators set weight and metadata; the source has none.
        const { weight, metadata } = existing ?? {};
        const input = { ...definedFields({ weight, metadata }), ...deployment.input, id };
        if (!isDryRun) await registry.register(template, input, { source: 'sync', fingerprint, container });
        report[existing === undefined ? 'added' : 'changed'].push({ template, id, name });
      } catch (thrown) {
        skip(reasonAgainst(thrown));
      }
    }
  }
  for (const definition of registry.active.definitions()) {
    const { template, id } = definition;
    if (!cameFrom(origin, definition) || !mayUse(template) || present.has(`${template}/${id}`)) continue;
    if (!registry.active.runsHere(definition)) continue;
    if (isDryRun || (await registry.withdraw(template, id, 'sync').catch(fail)))
      report.removed.push({ template, id });
  }
  return report;
}

/** Why one instance cannot be registered. Throws DATABASE_UNAVAILABLE, which concerns all of them and ends by itself. */
function reasonAgainst(thrown: unknown): string {
  if (hasCode(thrown, 'DATABASE_UNAVAILABLE')) fail(thrown);
  return asGatewayError(thrown).message;
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

/** For contents that an embedding program made. The registry checks the input of each entry. */
const contentsShape = compileShape(
  Type.Object({
    templates: Type.Array(Type.Object({ name: TemplateId, loadBalancer: Type.Object({}) })),
    isPartial: Type.Optional(Type.Boolean()),
    entries: Type.Array(
      Type.Object({
        template: TemplateId,
        input: Type.Unsafe<InstanceInput>(Type.Object({})),
        fingerprint: Type.String({ minLength: 1 }),
      }),
    ),
  }),
  'body',
);

/**
 * The same for a registry file. An unusable entry is a problem, not a failure. VALIDATION_ERROR for malformed contents,
 * DATABASE_UNAVAILABLE.
 */
export async function importContents(
  registry: Registry,
  contents: FileContents,
  { isDryRun = false, mayUse = () => true }: SyncRules = {},
): Promise<ImportReport> {
  if (!contentsShape.accepts(contents))
    throw validationFailed(contentsShape.issues(contents), 'The registry document');
  await registry.refresh();
  const report = emptyReport();
  for (const { name, loadBalancer } of contents.templates) {
    if (!mayUse(name)) continue;
    const isOther = !registry.active.hasSettings(name, loadBalancer);
    if (!isDryRun) await registry.ensureTemplate(name, loadBalancer).catch(fail);
    if (isOther && Object.keys(loadBalancer).length > 0) report.settings.push(name);
  }
  const present = new Set<string>();
  for (const entry of contents.entries) {
    if (!mayUse(entry.template)) continue;
    const id = entry.input.id ?? `${entry.template}-${entry.fingerprint.slice(0, 8)}`;
    const name = `${entry.template}/${id}`;
    if (present.has(name)) {
      report.problems.push(`${name}: it occurs more than once; the first one is used`);
      continue;
    }
    present.add(name);
    try {
      report[await importEntry(registry, { ...entry, input: { ...entry.input, id } }, isDryRun)].push(name);
    } catch (thrown) {
      report.problems.push(`${name}: ${reasonAgainst(thrown)}`);
    }
  }
  if (contents.isPartial === true) return report;
  for (const definition of registry.active.definitions()) {
    const { template, id, source } = definition;
    const name = `${template}/${id}`;
    if (source !== 'file' || present.has(name) || !mayUse(template)) continue;
    if (!registry.active.runsHere(definition)) continue;
    if (isDryRun || (await registry.withdraw(template, id).catch(fail))) report.removed.push(name);
  }
  return report;
}

type ImportOutcome = 'added' | 'changed' | 'unchanged' | 'keptAway';

async function importEntry(
  registry: Registry,
  { template, input, fingerprint }: FileEntry & { readonly input: { readonly id: string } },
  isDryRun: boolean,
): Promise<ImportOutcome> {
  const existing = registry.active.find(template, input.id);
  if (existing !== undefined && existing.source !== 'file') return 'unchanged';
  // A locked instance is registered again: the file has the secrets that cannot be read from the database.
  if (existing?.fingerprint === fingerprint && existing.locked === undefined) return 'unchanged';
  if (await registry.hasTombstone(template, input.id, fingerprint)) return 'keptAway';
  if (!isDryRun) await registry.register(template, input, { source: 'file', fingerprint });
  return existing === undefined ? 'added' : 'changed';
}

function emptyReport(): Record<ImportOutcome | 'removed' | 'settings' | 'problems', string[]> {
  return { added: [], changed: [], removed: [], unchanged: [], keptAway: [], settings: [], problems: [] };
}

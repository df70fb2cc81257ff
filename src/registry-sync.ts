// Synchronizes the instances that sync added with the present listing of one source. It changes no others, such as those
// registered through the API or a file. src/discovery/ lists the sources, gateway/sync.ts decides when.

import { createHash } from 'node:crypto';
import type {
  Deployment,
  Listing,
  SkippedDeployment,
  SyncedInstance,
  SyncReport,
  SyncRules,
} from './domain/deployment.ts';
import { asGatewayError } from './domain/errors.ts';
import type { InstanceDefinition } from './domain/instance.ts';
import type { Registry } from './registry.ts';

/** Adds what is new, replaces what changed, removes what is gone. What cannot be registered is skipped with the reason. */
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
  const present = new Set<string>();
  for (const deployment of deployments) {
    const { template, id, name } = deployment;
    if (!mayUse(template)) continue;
    const skip = (reason: string) => report.skipped.push({ template, name, reason });
    if (present.has(`${template}/${id}`)) {
      skip(`"${id}" is there more than once`);
      continue;
    }
    present.add(`${template}/${id}`);
    const fingerprint = fingerprintOf(origin, deployment);
    const existing = registry.find(template, id);
    if (existing !== undefined && existing.source !== 'sync') {
      skip(`"${id}" is registered by other means (${existing.source})`);
    } else if (existing?.fingerprint === fingerprint && existing.locked === undefined) {
      report.unchanged.push({ template, id, name });
    } else if (existing !== undefined && !registry.runsHere(existing)) {
      skip(`"${id}" belongs to the node "${existing.nodeId}"`);
    } else {
      try {
        if (await registry.isKeptAway(template, id, fingerprint)) {
          skip('it was deregistered; it is added again when it is deployed anew');
          continue;
        }
        const { input, container } = deployment;
        if (!isDryRun)
          await registry.register(template, { ...input, id }, { source: 'sync', fingerprint, container });
        report[existing === undefined ? 'added' : 'changed'].push({ template, id, name });
      } catch (thrown) {
        skip(asGatewayError(thrown).message);
      }
    }
  }
  for (const definition of registry.definitions()) {
    const { template, id } = definition;
    if (!cameFrom(origin, definition) || !mayUse(template) || present.has(`${template}/${id}`)) continue;
    if (!registry.runsHere(definition)) continue;
    if (isDryRun || (await registry.withdraw(template, id, 'sync'))) report.removed.push({ template, id });
  }
  return report;
}

/** Whether sync added it from this source, or from a part of it: `k8s:1a2b/` holds `k8s:1a2b/mcp-servers`. */
export function cameFrom(origin: string, { source, fingerprint = '' }: InstanceDefinition): boolean {
  return source === 'sync' && fingerprint.startsWith(origin.endsWith('/') ? origin : `${origin}#`);
}

function fingerprintOf(origin: string, { input, container, origin: part = origin }: Deployment): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([input, container?.id]))
    .digest('hex');
  return `${part}#${hash.slice(0, 24)}`;
}

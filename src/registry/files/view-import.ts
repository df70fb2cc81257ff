// Brings the views of source `file` in step with those of a registry file. Views of the API are not changed.

import { hash } from 'node:crypto';
import { asGatewayError, concernsAll } from '../../domain/errors/errors.ts';
import type { SkippedInstance } from '../../domain/instances/found-instances.ts';
import { NO_NAMES, type ViewDefinition } from '../../domain/views/view.ts';
import { VIEWS } from '../../persistence/store.ts';
import type { Registry } from '../registry.ts';

/**
 * Imports views. Resolves with the skipped ones and the reasons. `isPartial`: none is removed. Throws DATABASE_UNAVAILABLE,
 * SHUTTING_DOWN.
 */
export async function importViews(
  registry: Pick<Registry, 'views' | 'instances'>,
  wanted: readonly ViewDefinition[],
  isPartial: boolean,
): Promise<readonly SkippedInstance[]> {
  const { views } = registry;
  const skipped: SkippedInstance[] = [];
  const absent = wanted.flatMap(({ id }) => (views.find(id) === undefined ? [id] : []));
  const tombstones = absent.length === 0 ? undefined : await registry.instances.tombstones(VIEWS, absent);
  for (const definition of wanted) {
    const { id } = definition;
    const skip = (reason: string) => skipped.push({ template: id, name: `view ${id}`, reason });
    const fingerprint = hash('sha256', JSON.stringify(definition)).slice(0, 24);
    const before = views.find(id);
    if (before?.source === 'api') skip(`the view "${id}" was made through the API`);
    else if (before === undefined && tombstones?.get(id) === fingerprint)
      skip('it was deleted, and is added again when it changes');
    else if (before?.fingerprint !== fingerprint)
      await views.put(definition, { names: before?.names ?? NO_NAMES, fingerprint }).catch((thrown) => {
        if (concernsAll(thrown)) throw thrown;
        skip(asGatewayError(thrown).message);
      });
  }
  const ids = new Set(wanted.map(({ id }) => id));
  const missing = views
    .list()
    .filter(({ definition, source }) => source === 'file' && !ids.has(definition.id));
  if (!isPartial) for (const { definition } of missing) await views.withdraw(definition.id);
  return skipped;
}

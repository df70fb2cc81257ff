// Synchronizes instances with running containers and pods, and with the registry file. Source: ADRs 59 and 65.

import Type from 'typebox';
import { hasAllTemplates, mayUse } from '../../../domain/accounts/rights.ts';
import type { SyncedInstance } from '../../../domain/instances/found-instances.ts';
import { definedFields } from '../../../domain/json/json.ts';
import { closed, flag, text } from '../../records/schemas.ts';
import { json } from '../../replies/reply.ts';
import { withinShare } from '../../routing/bounded-work.ts';
import { defineRoute, type HttpRoute } from '../../routing/route.ts';

const Namespace = Type.String({ pattern: '^(\\*|[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)$' });

const Synced = Type.Array(
  Type.Object({
    template_name: text('everything'),
    instance_id: text('everything-1'),
    /** Name of the container or pod; absent when it was removed, and for entries of the registry file. */
    name: Type.Optional(text('echo')),
  }),
);

const SyncBody = Type.Object({
  dry_run: Type.Boolean(),
  added: Synced,
  changed: Synced,
  removed: Synced,
  unchanged: Synced,
  skipped: Type.Array(
    Type.Object({ template_name: text('everything'), name: text('echo'), reason: Type.String() }),
  ),
  settings: Type.Array(Type.String()),
  /** Engines and clusters that answered, and the registry file when it could be read. */
  reached: Type.Array(Type.String()),
  /** Failed engines and clusters with the reason, and unusable parts of the registry file. */
  warnings: Type.Array(Type.String()),
});

export const syncRoutes: readonly HttpRoute[] = [
  defineRoute('POST', '/gateway/sync', {
    summary:
      'Add, change and remove instances to match the containers and pods that run, and the registry file',
    scope: 'gateway:write',
    request: {
      body: closed({ dry_run: Type.Optional(flag(true)), namespace: Type.Optional(Namespace) }),
    },
    answers: {
      200: { description: 'The changes; with `dry_run`, those that would be made', body: SyncBody },
    },
    handler: async ({ body, principal }, { gateway, syncs }) => {
      const { dry_run: isDryRun = false, namespace } = body;
      const isLimited = !hasAllTemplates(principal);
      const limit = isLimited ? { mayUse: (template: string) => mayUse(principal, template) } : {};
      const sync = () => gateway.sync({ isDryRun, namespace, ...limit });
      const outcome = await withinShare(syncs, principal.id, 'syncs under way', sync);
      return json(200, {
        dry_run: isDryRun,
        added: outcome.added.map(recordOf),
        changed: outcome.changed.map(recordOf),
        removed: outcome.removed.map(recordOf),
        unchanged: outcome.unchanged.map(recordOf),
        skipped: outcome.skipped.map(({ template, ...rest }) => ({ template_name: template, ...rest })),
        settings: outcome.settings,
        reached: outcome.reached,
        warnings: outcome.warnings,
      });
    },
  }),
];

function recordOf({ template, id, name }: SyncedInstance) {
  return { template_name: template, instance_id: id, ...definedFields({ name }) };
}

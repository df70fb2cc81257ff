// Loads the authorization server in several turns of the event loop, because Node evaluates all that an import needs in one turn. Source: ADR 276.

import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';

/** Files of the library that need about equal times, each with what only the later ones need, too. */
export const PARTS = [
  'oidc-provider/lib/helpers/jwt.js',
  'oidc-provider/lib/helpers/configuration.js',
  'oidc-provider/lib/helpers/client_schema.js',
  'oidc-provider/lib/models/client.js',
  'oidc-provider/lib/models/index.js',
  'oidc-provider/lib/actions/grants/index.js',
  'oidc-provider/lib/actions/authorization/index.js',
  'oidc-provider/lib/actions/index.js',
  'oidc-provider',
];

export async function loadService(
  turns: Pick<TaskScheduler, 'turn'>,
): Promise<typeof import('./service.ts')> {
  for (const part of PARTS) {
    // Whatever cannot be loaded alone is loaded with the rest.
    await import(part).catch(() => undefined);
    await turns.turn();
  }
  await import('./provider.ts');
  await turns.turn();
  return import('./service.ts');
}

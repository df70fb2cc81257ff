// Loads the authorization server in several turns of the event loop. Source: ADR 276.

import { loadInTurns } from '../domain/time/load-in-turns.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';

/** Files of the library. */
export const LIBRARY_MODULES = [
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

export async function loadAuthorizationServer(
  turns: Pick<TaskScheduler, 'turn'>,
): Promise<typeof import('./authorization-server.ts')> {
  await loadInTurns(LIBRARY_MODULES, () => turns.turn());
  await import('./oauth-library.ts');
  await turns.turn();
  return import('./authorization-server.ts');
}

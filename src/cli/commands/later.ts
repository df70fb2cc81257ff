// Commands of the spec that are not built yet. They are known, so that using one is answered by one honest line instead
// of "there is no such command"; each leaves this list for a file of its own.

import type { CommandDefinition } from '../command.ts';
import { UsageError } from '../failures.ts';

/** Rows of the command table. Source: spec, "Command line". */
export const later: readonly CommandDefinition[] = ['gateway sync'].map((name) => ({
  name,
  positionals: '',
  summary: 'Not built yet',
  options: [],
  notYet: true,
  run: () => Promise.reject(new UsageError(`"stagedoor ${name}" is not built yet`)),
}));

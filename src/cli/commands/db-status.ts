// `stagedoor db status`: which database it is, whether it answers, and whether its tables are those of this version.

import type { CommandDefinition } from '../command.ts';
import { DATABASE_OPTIONS } from '../database/database-options.ts';
import type { DatabaseState } from '../database/database-state.ts';
import { readSettings } from '../setting-options.ts';

/** Row of the command table. Exit code 0 only when a gateway could start on it without a migration. */
export const dbStatus: CommandDefinition = {
  name: 'db status',
  positionals: '',
  summary: 'Show the database, its migrations and what it holds; exit code 1 when it cannot be used as it is',
  options: [...DATABASE_OPTIONS, { flags: '--json', description: 'Print it as JSON' }],
  examples: ['db status', 'db status --database postgresql://127.0.0.1/stagedoor'],
  run: async (input, terminal) => {
    const { databaseState } = await import('../database/database-state.ts');
    const state = await databaseState(readSettings(input, terminal), terminal);
    const { facts, json } = await import('../output.ts');
    terminal.print(input.switch('json') ? json(state) : facts(factsOf(state)));
    return state.is_usable ? 0 : 1;
  },
};

function factsOf(state: DatabaseState): readonly (readonly [string, string | number])[] {
  const { database, kind, is_reachable: isReachable, reason, migrations, counts, warnings } = state;
  return [
    ['database', database],
    ['kind', kind],
    ['answers', isReachable ? 'yes' : `no: ${reason}`],
    ...(migrations === null
      ? []
      : [
          [
            'migrations',
            `${migrations.applied.length} applied, ${migrations.pending.length} pending`,
          ] as const,
          ...migrations.pending.map((name) => ['pending', name] as const),
        ]),
    ...(isReachable && reason !== null ? [['usable', `no: ${reason}`] as const] : []),
    ...Object.entries(counts ?? {}).map(([name, count]) => [name.replaceAll('_', ' '), count] as const),
    ...warnings.map((warning) => ['warning', warning] as const),
  ];
}

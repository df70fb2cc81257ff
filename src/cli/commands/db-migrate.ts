// `stagedoor db migrate`: makes the database when there is none, and brings its tables up to this version. `gateway start`
// does the same; this is for those who want to do it before, or with another user of the database.

import type { CommandDefinition } from '../command.ts';
import { DATABASE_OPTIONS } from '../database/database-options.ts';
import { readSettings } from '../setting-options.ts';

/** Row of the command table. */
export const dbMigrate: CommandDefinition = {
  name: 'db migrate',
  positionals: '',
  summary: 'Create the database or bring it up to this version',
  options: [...DATABASE_OPTIONS, { flags: '--json', description: 'Print the migrations as JSON' }],
  examples: ['db migrate', 'db migrate --database postgresql://gateway@db.example.com/stagedoor'],
  run: async (input, terminal) => {
    const { migrateDatabase } = await import('../database/database-state.ts');
    const { name, applied } = await migrateDatabase(readSettings(input, terminal), terminal);
    const { json } = await import('../output.ts');
    if (input.switch('json')) terminal.print(json({ database: name, applied }));
    else {
      for (const each of applied) terminal.print(`applied ${each}`);
      terminal.print(applied.length === 0 ? `${name} was up to date` : `${name} is up to date`);
    }
    return 0;
  },
};

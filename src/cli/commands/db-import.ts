// `stagedoor db import`: takes a registry document into the database, for good. Gateways on it follow within 10 s.

import { resolve } from 'node:path';
import type { CommandDefinition } from '../command.ts';
import { DATABASE_OPTIONS } from '../database/database-options.ts';
import { CommandFailure } from '../failures.ts';
import { readSettings } from '../setting-options.ts';

/** Row of the command table. Exit code 1 when something of the document could not be used; the rest is taken. */
export const dbImport: CommandDefinition = {
  name: 'db import',
  positionals: '<file>',
  summary:
    'Take a registry document (JSON or YAML, any shape) into the database, as if each entry were registered',
  options: [
    {
      flags: '--node-id <name>',
      description: 'Gateway that runs its programs; default what one started here is called',
    },
    ...DATABASE_OPTIONS,
    { flags: '--json', description: 'Print what was done as JSON' },
  ],
  examples: ['db import registry.yaml', 'db import mcp.json --node-id build-1:8080'],
  run: async (input, terminal) => {
    const config = readSettings(input, terminal);
    const [{ withDatabase }, { importDocument }] = await Promise.all([
      import('../database/open-database.ts'),
      import('../database/import-document.ts'),
    ]);
    const contents = await contentsOf(resolve(terminal.folder, input.positional(0)));
    const { name, done } = await withDatabase(config, terminal, async (database) => ({
      name: database.name,
      done: await importDocument(database.store, contents, {
        nodeId: config.nodeId,
        now: new Date().toISOString(),
        folder: terminal.folder,
        protectedPaths: database.protectedPaths,
      }),
    }));

    const { json, printable } = await import('../output.ts');
    if (input.switch('json')) terminal.print(json(done));
    else {
      for (const each of done.added) terminal.print(`added ${each}`);
      for (const each of done.replaced) terminal.print(`replaced ${each}`);
      const programs = contents.entries.some(({ input: { command } }) => command !== undefined);
      const where = programs ? `; ${config.nodeId} runs the programs` : '';
      const count = done.added.length + done.replaced.length;
      terminal.print(`${count} ${count === 1 ? 'instance is' : 'instances are'} in ${name}${where}`);
    }
    for (const problem of done.problems) terminal.complain(printable(problem));
    return done.problems.length === 0 ? 0 : 1;
  },
};

async function contentsOf(path: string) {
  const { RegistryFileError, readRegistryFile } = await import('../../persistence/registry-file.ts');
  try {
    return await readRegistryFile(path);
  } catch (error) {
    if (error instanceof RegistryFileError) throw new CommandFailure(error.message, { cause: error });
    throw error;
  }
}

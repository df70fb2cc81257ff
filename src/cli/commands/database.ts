// `stagedoor db status | migrate | export | import | rekey`: commands on the database itself, without a gateway.

import { resolve } from 'node:path';
import { runsProgram } from '../../domain/instances/transport-kinds.ts';
import { counted } from '../../domain/text.ts';
import { type Command, JSON_OPTION } from '../command.ts';
import type { DatabaseReport } from '../database/open-database.ts';
import { CommandFailure } from '../failures.ts';
import { detailLines, indentedJson, printable, printResult } from '../output.ts';
import { resultWriter } from '../private-file.ts';
import { DATABASE_OPTIONS, readSettings } from '../setting-options.ts';

/** Shows the state of the database. Exit code 0 only when a gateway could start on it without a migration. */
export const dbStatus: Command = {
  name: 'db status',
  summary: 'Show the database and its migrations; exit code 1 when it cannot be used as it is',
  options: { ...DATABASE_OPTIONS, ...JSON_OPTION },
  examples: ['db status', 'db status --database postgresql://127.0.0.1/stagedoor'],
  run: async (input, terminal) => {
    const { databaseReport } = await import('../database/open-database.ts');
    const state = await databaseReport(readSettings(input, terminal), terminal);
    printResult(input, terminal, state, () => detailLines(terminal, databaseRows(state)));
    return state.is_usable ? 0 : 1;
  },
};

function databaseRows(state: DatabaseReport): readonly (readonly [string, unknown])[] {
  const { database, kind, is_reachable: isReachable, reason, migrations, warnings } = state;
  return [
    ['database', database],
    ['kind', kind],
    ['answers', isReachable ? 'yes' : `no: ${reason}`],
    [
      'migrations',
      migrations && `${migrations.applied.length} applied, ${migrations.pending.length} pending`,
    ],
    ...(migrations?.pending ?? []).map((name) => ['pending', name] as const),
    ['usable', isReachable && reason !== null ? `no: ${reason}` : ''],
    ...warnings.map((warning) => ['warning', warning] as const),
  ];
}

/**
 * Creates the database if there is none, and migrates its tables to this version. `gateway start` does the
 * same; this command does it beforehand, or as another user of the database.
 */
export const dbMigrate: Command = {
  name: 'db migrate',
  summary: 'Create the database or bring it up to this version',
  options: { ...DATABASE_OPTIONS, ...JSON_OPTION },
  examples: ['db migrate', 'db migrate --database postgresql://gateway@db.example.com/stagedoor'],
  run: async (input, terminal) => {
    const { migrateDatabase } = await import('../database/open-database.ts');
    const { name, applied } = await migrateDatabase(readSettings(input, terminal), terminal);
    const last = applied.length === 0 ? `${name} was up to date` : `${name} is up to date`;
    return printResult(input, terminal, { database: name, applied }, () =>
      [...applied.map((each) => `applied ${each}`), last].join('\n'),
    );
  },
};

/** Writes a registry document to standard output, or to a file that only its owner can read. */
export const dbExport: Command = {
  name: 'db export',
  summary:
    'Write templates, instances, views and stored definitions, without accounts, as a registry document',
  options: {
    '--file <path>': 'New file that only its owner can read; default standard output',
    '--with-secrets': 'Include environment variables and headers in plain text',
    ...DATABASE_OPTIONS,
  },
  examples: ['db export --file registry.json', 'db export --with-secrets --file backup.json'],
  run: async (input, terminal) => {
    const [{ withDatabase }, { registryDocument }] = await Promise.all([
      import('../database/open-database.ts'),
      import('../database/registry-document.ts'),
    ]);
    const withSecrets = input.has('with-secrets');
    const write = resultWriter(terminal, input.text('file'));
    const { document, withheld, unreadable } = await withDatabase(
      readSettings(input, terminal),
      terminal,
      async ({ store }) =>
        registryDocument(await store.templates.list(), await store.instances.list(), {
          withSecrets,
          views: await store.views.list(),
          definitions: await store.definitions.list(),
        }),
    );
    // A backup must be complete: a gap would be noticed only when it is restored.
    if (unreadable.length > 0) throw new CommandFailure(unreadable.join('; '));
    const count = Object.values(document.templates).flatMap(({ instances }) => instances).length;
    write(indentedJson(document), `, ${counted(count, 'instance')}`);
    if (withheld.length > 0) {
      const names = withheld.join(', ');
      terminal.note(
        `left out the environment variables and headers of ${names}; --with-secrets includes them`,
      );
    }
    return 0;
  },
};

/** Stores a registry document in the database; gateways on it follow within 10 s. Exit code 1 when a part cannot be used. */
export const dbImport: Command = {
  name: 'db import',
  positionals: '<file>',
  summary: 'Import a registry document (JSON or YAML, any shape) into the database',
  options: {
    '--node-id <name>':
      'Node that runs its programs; default the name of a gateway started here, on a database server any for those without a working folder',
    ...DATABASE_OPTIONS,
    ...JSON_OPTION,
  },
  examples: ['db import registry.json', 'db import mcp.json --node-id build-1:8080'],
  run: async (input, terminal) => {
    const config = readSettings(input, terminal);
    const [{ withDatabase }, { importDocument }, { readRegistryFile }] = await Promise.all([
      import('../database/open-database.ts'),
      import('../database/registry-document.ts'),
      import('../../registry/files/registry-file.ts'),
    ]);
    const { name, contents, stripped, done, isAnyDefault } = await withDatabase(
      config,
      terminal,
      async (database) => {
        const { name, store, protectedPaths } = database;
        const isAnyDefault = database.isAnyDefault && input.text('node-id') === undefined;
        const contents = await readRegistryFile(resolve(terminal.folder, input.positional(0)), {
          isImport: true,
        });
        const { ephemeralNodes: hasEphemeralNodes } = config.cluster;
        const own = { nodeId: config.nodeId, isAnyDefault, hasEphemeralNodes, protectedPaths };
        const context = { ...own, now: new Date().toISOString(), folder: terminal.folder };
        const { stripped, ...done } = await importDocument(store, contents, context);
        return { name, contents, stripped, done, isAnyDefault };
      },
    );

    const programs = contents.entries.some(({ input }) => runsProgram(input));
    const where = programs && !isAnyDefault ? `; ${config.nodeId} runs the programs` : '';
    const count = [...done.added, ...done.replaced].filter((name) => name.includes('/')).length;
    printResult(input, terminal, done, () =>
      [
        ...done.added.map((each) => `added ${each}`),
        ...done.replaced.map((each) => `replaced ${each}`),
        `${count} ${count === 1 ? 'instance is' : 'instances are'} in ${name}${where}`,
      ].join('\n'),
    );
    if (stripped.length > 0) {
      const names = stripped.join(', ');
      const file = printable(input.positional(0));
      terminal.note(`removed the environment variables or headers of ${names}, which ${file} leaves out`);
    }
    for (const problem of done.problems) terminal.complain(printable(problem));
    return done.problems.length === 0 ? 0 : 1;
  },
};

/**
 * Encrypts secrets in the database again, with the first key of this command's settings; gateways may use it meanwhile. May be
 * repeated. Exit code 1 when a secret cannot be decrypted.
 */
export const dbRekey: Command = {
  name: 'db rekey',
  summary: 'Encrypt the secrets in the database again, with the first encryption key',
  options: { ...DATABASE_OPTIONS, ...JSON_OPTION },
  examples: ['db rekey', 'db rekey --json'],
  run: async (input, terminal) => {
    const config = readSettings(input, terminal);
    const { withDatabase } = await import('../database/open-database.ts');
    const { name, ...result } = await withDatabase(config, terminal, async ({ store, name }) => {
      const rekey = (progress: (text: string) => void) =>
        store.rekey((texts) => progress(`${counted(texts, 'secret')} of ${name}`));
      return { name, ...(await terminal.busy(`encrypting ${name}`, rekey)) };
    });
    const { done, current, unreadable, reasons } = result;
    printResult(input, terminal, { database: name, ...result }, () =>
      detailLines(terminal, [
        ['database', name],
        ['encrypted again', done],
        ['already current', current],
        ['cannot be decrypted', unreadable],
      ]),
    );
    for (const reason of reasons) terminal.complain(printable(reason));
    if (unreadable > reasons.length) terminal.complain(`and ${unreadable - reasons.length} more`);
    return unreadable === 0 ? 0 : 1;
  },
};

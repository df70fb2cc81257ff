// `stagedoor db export`: the templates and instances of the database as a registry document.

import { existsSync, lstatSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { CommandDefinition } from '../command.ts';
import type { CommandInput } from '../command-input.ts';
import { DATABASE_OPTIONS } from '../database/database-options.ts';
import type { RegistryDocument } from '../database/registry-document.ts';
import { CommandFailure, UsageError } from '../failures.ts';
import { readSettings } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';

/** Row of the command table. The document goes to standard output, or to a file that only its owner can read. */
export const dbExport: CommandDefinition = {
  name: 'db export',
  positionals: '',
  summary: 'Write templates and instances as a registry document; accounts are not in it',
  options: [
    {
      flags: '--file <path>',
      description: 'Where to; YAML for .yaml and .yml. Default standard output, as JSON',
    },
    { flags: '--force', description: 'Replace the file when there is one' },
    {
      flags: '--with-secrets',
      description: 'With environment variables and headers, as they are; without it they are left out',
    },
    ...DATABASE_OPTIONS,
    { flags: '--json', description: 'JSON, whatever the file is called' },
  ],
  examples: ['db export --file registry.yaml', 'db export --with-secrets --file backup.json'],
  run: async (input, terminal) => {
    const [{ withDatabase }, { registryDocument }] = await Promise.all([
      import('../database/open-database.ts'),
      import('../database/registry-document.ts'),
    ]);
    const withSecrets = input.switch('with-secrets') === true;
    const path = targetOf(input, terminal);
    const { document, withheld, unreadable } = await withDatabase(
      readSettings(input, terminal),
      terminal,
      async ({ store }) =>
        registryDocument(await store.listTemplates(), await store.listInstances(), { withSecrets }),
    );
    // A document that is kept as a backup must not lack what only a restore would find missing.
    if (unreadable.length > 0) throw new CommandFailure(unreadable.slice(0, MOST_NAMED).join('; '));
    const isYaml = path !== undefined && /\.ya?ml$/i.test(path) && input.switch('json') !== true;
    const text = await written(document, isYaml);
    if (path === undefined) terminal.print(text.trimEnd());
    else {
      await save(path, text);
      const sections = Object.values(document.templates);
      const count = sections.reduce((sum, { instances }) => sum + instances.length, 0);
      terminal.note(`wrote ${path}, ${count} ${count === 1 ? 'instance' : 'instances'}`);
    }
    if (withheld.length > 0) {
      const whose = withheld.length > MOST_NAMED ? `${withheld.length} instances` : withheld.join(', ');
      terminal.note(`left out the environment variables and headers of ${whose}; --with-secrets takes them`);
    }
    return 0;
  },
};

/** Where the document goes, absolute; undefined for standard output. What cannot be is refused before anything is read. */
function targetOf(input: CommandInput, { folder }: Terminal): string | undefined {
  const written = input.text('file');
  const isForced = input.switch('force') === true;
  if (written === undefined) {
    if (isForced) throw new UsageError('--force belongs to --file');
    return undefined;
  }
  const path = resolve(folder, written);
  if (!existsSync(dirname(path))) {
    throw new CommandFailure(`${path} cannot be written: there is no folder ${dirname(path)}`);
  }
  // A link that leads nowhere is there, too.
  if (!isForced && lstatSync(path, { throwIfNoEntry: false }) !== undefined) {
    throw new CommandFailure(`${path} is there already; --force replaces it`);
  }
  return path;
}

/** Names in one line; more are only counted. */
const MOST_NAMED = 5;

async function written(document: RegistryDocument, isYaml: boolean): Promise<string> {
  if (!isYaml) return `${(await import('../output.ts')).json(document)}\n`;
  const { stringify } = await import('yaml');
  return stringify(document);
}

async function save(path: string, text: string): Promise<void> {
  const { writePrivateFile } = await import('../private-file.ts');
  try {
    writePrivateFile(path, text);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : 'unknown reason';
    throw new CommandFailure(`${path} cannot be written (${code})`, { cause: error });
  }
}

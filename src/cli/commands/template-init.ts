// `stagedoor template init`: writes a new template.json, from options or from the answers of a person.

import { resolve } from 'node:path';
import type { CommandDefinition } from '../command.ts';
import type { CommandInput } from '../command-input.ts';
import { UsageError } from '../failures.ts';
import type { TemplateAnswers } from '../template-wizard.ts';

/** Row of the command table. */
export const templateInit: CommandDefinition = {
  name: 'template init',
  positionals: '[id]',
  summary: 'Write a new template definition; asks for what is not given as an option',
  options: [
    { flags: '--name <text>', description: 'Display name; default made from the id' },
    { flags: '--description <text>', description: 'What the server does, in a sentence' },
    { flags: '--command <line>', description: 'Program with its words that speaks MCP over stdio' },
    { flags: '--endpoint <url>', description: 'URL of a server that runs already' },
    { flags: '--author <text>', description: 'A person or an organization' },
    { flags: '--tag <tag>', description: 'A tag for "template list --tag"; repeatable', repeatable: true },
    { flags: '--into <folder>', description: 'Folder in which <id>/template.json is made; default this one' },
    { flags: '--force', description: 'Replace a definition that is there' },
  ],
  examples: [
    'template init search --description "Searches documents." --command "node server.js" --into drafts',
  ],
  run: async (input, terminal) => {
    const given = answersIn(input);
    if (given.command !== undefined && given.endpoint !== undefined)
      throw new UsageError('--command and --endpoint cannot be combined');
    const missing = [
      ...(given.id === undefined ? ['<id>'] : []),
      ...(given.description === undefined ? ['--description'] : []),
      ...(given.command === undefined && given.endpoint === undefined ? ['--command or --endpoint'] : []),
    ];
    if (missing.length > 0 && !terminal.canAsk)
      throw new UsageError(`there is no terminal to ask at: give ${missing.join(', ')}`);
    const answers = missing.length === 0 ? given : await asked(given);
    const [{ readTemplate, TemplateError }, { placeDefinition }] = await Promise.all([
      import('../../templates/definition.ts'),
      import('../template-files.ts'),
    ]);
    const text = `${JSON.stringify(definitionOf(answers), null, 2)}\n`;
    try {
      const { id } = readTemplate(text);
      const folder = resolve(terminal.folder, input.text('into') ?? '.');
      const path = await placeDefinition(folder, { id, text, isForced: input.switch('force') === true });
      terminal.print(`${path} is written; "stagedoor template add" puts it into the folder of templates`);
      return 0;
    } catch (thrown) {
      if (thrown instanceof TemplateError) throw new UsageError(thrown.message, { cause: thrown });
      throw thrown;
    }
  },
};

async function asked(given: TemplateAnswers): Promise<TemplateAnswers> {
  const { askTemplate } = await import('../template-wizard.ts');
  // Questions go where complaints go: standard output may be a file.
  return askTemplate(given, { input: process.stdin, output: process.stderr });
}

function answersIn(input: CommandInput): TemplateAnswers {
  const texts = {
    id: input.positionals[0],
    name: input.text('name'),
    description: input.text('description'),
    command: input.text('command'),
    endpoint: input.text('endpoint'),
    author: input.text('author'),
  };
  return { ...texts, tags: input.texts('tag') };
}

function definitionOf({
  id = '',
  name,
  description,
  author,
  tags,
  command,
  endpoint,
}: TemplateAnswers): object {
  return {
    id,
    name: name ?? id.replaceAll('-', ' ').replace(/^./, (letter) => letter.toUpperCase()),
    description,
    version: '0.1.0',
    author,
    capabilities: ['tools'],
    tags: tags.length === 0 ? undefined : tags,
    transport: command === undefined ? 'http' : 'stdio',
    command,
    endpoint,
  };
}

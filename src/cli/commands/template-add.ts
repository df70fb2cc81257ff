// `stagedoor template add`: puts a definition into the folder of templates, once it is known to be usable.

import { basename, join, resolve } from 'node:path';
import type { CommandDefinition } from '../command.ts';
import { CommandFailure, UsageError } from '../failures.ts';

/** Row of the command table. */
export const templateAdd: CommandDefinition = {
  name: 'template add',
  positionals: '<folder>',
  summary: 'Copy the template.json of a folder into the folder of templates, once it is valid',
  options: [
    {
      flags: '--templates-dir <folder>',
      description:
        'The folder of templates; default MCP_GATEWAY_TEMPLATES_DIR or templates_dir of gateway.yaml',
    },
    { flags: '--force', description: 'Replace a template with the same id' },
  ],
  examples: ['template add drafts/search --templates-dir templates'],
  run: async (input, terminal) => {
    const [
      { readSettings },
      { readTemplate, TemplateError },
      { readTemplateText, TemplateFileError },
      { placeDefinition },
    ] = await Promise.all([
      import('../setting-options.ts'),
      import('../../templates/definition.ts'),
      import('../../templates/template-file.ts'),
      import('../template-files.ts'),
    ]);
    const { templatesFolder } = readSettings(input, terminal);
    if (templatesFolder === undefined)
      throw new UsageError(
        'name the folder of templates: --templates-dir <folder>; those of stagedoor stay as they are',
      );
    const written = input.positional(0);
    const folder = resolve(terminal.folder, written);
    const file = join(written, 'template.json');
    try {
      const text = await readTemplateText(join(folder, 'template.json'));
      const { id } = readTemplate(text, basename(folder));
      const path = await placeDefinition(templatesFolder, {
        id,
        text,
        isForced: input.switch('force') === true,
      });
      terminal.print(`${id} is added as ${path}; a gateway reads it when it starts`);
      return 0;
    } catch (thrown) {
      if (thrown instanceof TemplateFileError)
        throw new UsageError(`${file} ${thrown.message}`, { cause: thrown });
      if (!(thrown instanceof TemplateError)) throw thrown;
      throw new CommandFailure(`${file} is not valid and was not added`, {
        cause: thrown,
        details: thrown.findings,
      });
    }
  },
};

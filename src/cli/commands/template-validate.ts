// `stagedoor template validate`: everything that is wrong with a template.json, and where. No gateway is needed.

import { basename, dirname, resolve } from 'node:path';
import type { Remark } from '../../templates/validate.ts';
import type { CommandDefinition } from '../command.ts';
import { UsageError } from '../failures.ts';

/** Row of the command table. */
export const templateValidate: CommandDefinition = {
  name: 'template validate',
  positionals: '<file>',
  summary: 'Check a template definition: every violation with its place',
  options: [
    { flags: '--strict', description: 'Take warnings, such as unknown properties, for violations' },
    {
      flags: '--tolerant',
      description: 'Read the forms of other platforms, as the gateway does, and say how each was read',
    },
    { flags: '--json', description: 'Print the result as JSON' },
  ],
  examples: [
    'template validate drafts/search/template.json',
    'template validate drafts/search/template.json --strict',
    'template validate drafts/search/template.json --tolerant --json',
  ],
  run: async (input, terminal) => {
    const [
      { json, printable },
      { validateTemplate },
      { TemplateError },
      { readTemplateText, TemplateFileError },
    ] = await Promise.all([
      import('../output.ts'),
      import('../../templates/validate.ts'),
      import('../../templates/definition.ts'),
      import('../../templates/template-file.ts'),
    ]);
    const file = input.positional(0);
    const path = resolve(terminal.folder, file);
    const options = { isTolerant: input.switch('tolerant') === true, folder: basename(dirname(path)) };
    const { violations, warnings, readings } = await readTemplateText(path)
      .then((text) => validateTemplate(text, options))
      .catch((thrown: unknown) => {
        if (thrown instanceof TemplateFileError)
          throw new UsageError(`${file} ${thrown.message}`, { cause: thrown });
        if (!(thrown instanceof TemplateError)) throw thrown;
        return { violations: [{ pointer: '', message: thrown.message }], warnings: [], readings: [] };
      });
    const isValid = violations.length === 0 && (warnings.length === 0 || input.switch('strict') !== true);
    const lineOf = ({ line, pointer, message }: Remark): string =>
      printable(
        `${line === undefined ? file : `${file}:${line}`}: ${pointer === '' ? '' : `${pointer} `}${message}`,
      );
    if (input.switch('json')) terminal.print(json({ valid: isValid, violations, warnings, readings }));
    else {
      for (const reading of readings) terminal.print(`read: ${lineOf(reading)}`);
      for (const violation of violations) terminal.complain(lineOf(violation));
      for (const warning of warnings) terminal.complain(`warning: ${lineOf(warning)}`);
      if (isValid) terminal.print(`${file} is a valid template definition`);
    }
    return isValid ? 0 : 1;
  },
};

// `stagedoor template list`: the templates that a gateway knows, or those in the folder of this machine.

import { type Fields, fields } from '../answers.ts';
import type { CommandDefinition } from '../command.ts';
import { TEMPLATE_OPTIONS, templatesOf } from '../template-records.ts';

/** Row of the command table. */
export const templateList: CommandDefinition = {
  name: 'template list',
  positionals: '',
  summary: 'List the templates: what each is, and how many instances it has',
  options: [{ flags: '--tag <tag>', description: 'Only templates with this tag' }, ...TEMPLATE_OPTIONS],
  examples: ['template list', 'template list --tag files --local'],
  run: async (input, terminal) => {
    const { json, table } = await import('../output.ts');
    const records = await templatesOf(input, terminal, input.text('tag'));
    if (input.switch('json')) terminal.print(json({ templates: records }));
    else if (records.length === 0) terminal.print('There is no such template.');
    else
      terminal.print(
        table(terminal, ['TEMPLATE', 'VERSION', 'INSTANCES', 'TAGS', 'DESCRIPTION'], records.map(rowOf)),
      );
    return 0;
  },
};

function rowOf(record: Fields): string[] {
  const { id, version, instances, tags, description } = fields(record);
  const shown = [tags]
    .flat()
    .filter((tag) => tag !== undefined)
    .join(', ');
  return [String(id), String(version ?? ''), String(instances ?? ''), shown, String(description ?? '')];
}

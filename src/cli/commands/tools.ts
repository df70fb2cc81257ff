// `stagedoor gateway tools`: the tools of a template and what they take.

import { type Fields, fields } from '../answers.ts';
import { CLIENT_OPTIONS, gatewayOf } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';
import { ofTemplate } from '../nearest-template.ts';
import { toolsOf } from '../tool-arguments.ts';

/** Row of the command table. */
export const tools: CommandDefinition = {
  name: 'gateway tools',
  positionals: '<template>',
  summary: 'List the tools of a template and their arguments; those in brackets may be left out',
  options: CLIENT_OPTIONS,
  examples: ['gateway tools everything', 'gateway tools everything --json'],
  run: async (input, terminal) => {
    const { json, table } = await import('../output.ts');
    const template = input.positional(0);
    const gateway = await gatewayOf(input, terminal);
    const path = `/mcp/${encodeURIComponent(template)}/tools/list`;
    const answer = await ofTemplate(gateway, template, () => gateway.request(path));
    const found = toolsOf(answer);
    if (input.switch('json')) terminal.print(json(answer));
    else if (found.length === 0) terminal.print(`${template} has no tools`);
    else {
      const rows = found.map((tool) => [
        String(tool.name),
        argumentsOf(tool),
        String(tool.description ?? ''),
      ]);
      terminal.print(table(terminal, ['TOOL', 'ARGUMENTS', 'DESCRIPTION'], rows));
    }
    return 0;
  },
};

/** `a:number [b:string]`. */
function argumentsOf({ parameters }: Fields): string {
  const { properties, required } = fields(parameters);
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.entries(fields(properties))
    .map(([name, schema]) => {
      const { type } = fields(schema);
      const written = `${name}:${Array.isArray(type) ? type.join('|') : type}`;
      return needed.includes(name) ? written : `[${written}]`;
    })
    .join(' ');
}

// `stagedoor template show`: what a template is and which settings its instances take.

import { type Fields, fields } from '../answers.ts';
import type { CommandDefinition } from '../command.ts';
import { TEMPLATE_OPTIONS, templateOf } from '../template-records.ts';

/** Row of the command table. */
export const templateShow: CommandDefinition = {
  name: 'template show',
  positionals: '<template>',
  summary: 'Show a template: what it is, what it requires, and the settings of its instances',
  options: TEMPLATE_OPTIONS,
  examples: ['template show filesystem', 'template show filesystem --local --json'],
  run: async (input, terminal) => {
    const { facts, json, table } = await import('../output.ts');
    const record = await templateOf(input, terminal, input.positional(0));
    if (input.switch('json')) {
      terminal.print(json(record));
      return 0;
    }
    terminal.print(facts(FIELDS.flatMap((name) => factOf(name, record[name]))));
    const settings = settingsOf(record);
    if (settings.length > 0) {
      terminal.print(
        `\n${table(terminal, ['SETTING', 'TYPE', 'DEFAULT', 'GOES TO', 'DESCRIPTION'], settings)}`,
      );
    }
    return 0;
  },
};

const FIELDS = [
  ...['id', 'name', 'description', 'version', 'author', 'capabilities', 'tags', 'requires', 'ports'],
  ...['transport', 'docker_image', 'instances'],
];

function factOf(name: string, value: unknown): [string, string][] {
  const text = Array.isArray(value) ? value.join(', ') : String(value ?? '');
  return text === '' ? [] : [[name, text]];
}

function settingsOf({ config_schema }: Fields): string[][] {
  const { properties, required } = fields(config_schema);
  const needed = Array.isArray(required) ? required : [];
  return Object.entries(fields(properties)).map(([name, property]) => {
    const { type, enum: values, default: value, description, ...places } = fields(property);
    const kind = Array.isArray(values) ? values.join(' | ') : [type].flat().join(' | ');
    const goesTo = ['env_mapping', 'header_mapping'].flatMap((place) => places[place] ?? []);
    const isArgument = places.command_arg === undefined || places.command_arg === false ? [] : ['arguments'];
    return [
      name + (needed.includes(name) ? ' (required)' : ''),
      kind + (places.sensitive === true ? ', secret' : ''),
      value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value),
      [...goesTo, ...isArgument].join(', '),
      String(description ?? ''),
    ];
  });
}

// `stagedoor template list | show`: the templates of a gateway, or those in the folder of definitions of this machine.

import { didYouMean } from '../../config/nearest.ts';
import { type Fields, fields, itemsOf, listOf } from '../answers.ts';
import { CLIENT_OPTIONS, gatewayOf, WIDE_OPTION } from '../client-options.ts';
import type { CommandDefinition, CommandInput, OptionTable } from '../command.ts';
import { CommandFailure } from '../failures.ts';
import { type Columns, facts, printResult, table } from '../output.ts';
import type { Terminal } from '../terminal.ts';

const TEMPLATE_OPTIONS: OptionTable = {
  '--local': 'Read the definitions of this machine; no gateway is asked',
  '--templates-dir <folder>': 'With --local: the folder of definitions',
  ...CLIENT_OPTIONS,
};

export const templateList: CommandDefinition = {
  name: 'template list',
  summary: 'List the templates: what each is, and how many instances it has',
  options: {
    '--tag <tag>': 'Only templates with this tag',
    ...WIDE_OPTION,
    ...TEMPLATE_OPTIONS,
  },
  examples: ['template list', 'template list --tag files --local'],
  run: async (input, terminal) => {
    const records = await templatesOf(input, terminal, input.text('tag'));
    const isWide = input.has('wide');
    return printResult(input, terminal, { templates: records }, () =>
      records.length === 0 ? 'There is no such template.' : table(terminal, COLUMNS, records, { isWide }),
    );
  },
};

const COLUMNS: Columns<Fields> = {
  TEMPLATE: 'id',
  VERSION: 'version',
  INSTANCES: 'instances',
  TAGS: 'tags',
  DESCRIPTION: 'description',
};

export const templateShow: CommandDefinition = {
  name: 'template show',
  positionals: '<template>',
  summary: 'Show a template: what it is, what it requires, and the settings of its instances',
  options: TEMPLATE_OPTIONS,
  examples: ['template show filesystem', 'template show filesystem --local --json'],
  run: async (input, terminal) => {
    const record = await templateOf(input, terminal, input.positional(0));
    return printResult(input, terminal, record, () => {
      const pairs = FIELDS.map((name) => [name, record[name]] as const);
      const settings = settingsOf(record);
      const tables = settings.length === 0 ? [] : [table(terminal, SETTING_COLUMNS, settings)];
      return [facts(terminal, pairs), ...tables].join('\n\n');
    });
  },
};

const FIELDS = [
  ...['id', 'name', 'description', 'version', 'author', 'capabilities', 'tags', 'requires', 'ports'],
  ...['transport', 'docker_image', 'instances'],
];

function settingsOf({ config_schema }: Fields): readonly Fields[] {
  const { properties, required } = fields(config_schema);
  return Object.entries(fields(properties)).map(([name, property]) => ({
    ...fields(property),
    setting: name + (itemsOf(required).includes(name) ? ' (required)' : ''),
  }));
}

const SETTING_COLUMNS: Columns<Fields> = {
  SETTING: 'setting',
  TYPE: ({ enum: values, type, sensitive }) =>
    (Array.isArray(values) ? values : [type].flat()).join(' | ') + (sensitive === true ? ', secret' : ''),
  DEFAULT: ({ default: value }) => (typeof value === 'string' ? value : JSON.stringify(value)),
  'GOES TO': ({ env_mapping: variable, header_mapping: header, command_arg: argument }) =>
    [variable ?? [], header ?? [], argument === undefined || argument === false ? [] : 'arguments'].flat(),
  DESCRIPTION: 'description',
};

/** All templates, or those with a tag, sorted by id. */
async function templatesOf(
  input: CommandInput,
  terminal: Terminal,
  tag: string | undefined,
): Promise<readonly Fields[]> {
  if (input.has('local')) {
    const records = await localTemplates(input, terminal);
    return records.filter(({ tags }) => tag === undefined || (Array.isArray(tags) && tags.includes(tag)));
  }
  const gateway = await gatewayOf(input, terminal);
  const query = new URLSearchParams({ include_details: 'true', ...(tag === undefined ? {} : { tag }) });
  const { details } = fields(await gateway.request(`/gateway/templates?${query}`));
  return listOf(details);
}

/** One template. Throws CommandFailure when there is none. */
async function templateOf(input: CommandInput, terminal: Terminal, id: string): Promise<Fields> {
  if (!input.has('local')) {
    const gateway = await gatewayOf(input, terminal);
    return fields(await gateway.request(`/gateway/templates/${encodeURIComponent(id)}`));
  }
  const records = await localTemplates(input, terminal);
  const found = records.find((record) => record.id === id);
  if (found !== undefined) return found;
  const ids = records.map((record) => String(record.id));
  const advice = didYouMean(id, ids) ?? '"stagedoor template list --local" shows all';
  throw new CommandFailure(`there is no template "${id}"; ${advice}`);
}

async function localTemplates(input: CommandInput, terminal: Terminal): Promise<readonly Fields[]> {
  const [{ readSettings }, { readCatalogue }, { withoutSecrets }] = await Promise.all([
    import('../setting-options.ts'),
    import('../../templates/catalogue.ts'),
    import('../../templates/settings.ts'),
  ]);
  const { templatesFolder } = readSettings(input, terminal);
  const { templates, problems } = await readCatalogue(templatesFolder);
  for (const problem of problems) terminal.complain(`warning: ${problem}`);
  return templates.map(({ environment, command, args, endpoint, config_schema, ...shown }) => ({
    ...shown,
    ...(config_schema === undefined ? {} : { config_schema: withoutSecrets(config_schema) }),
  }));
}

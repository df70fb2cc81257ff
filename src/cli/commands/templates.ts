// `stagedoor template list | show`: the templates of a gateway, or of the folder of definitions on this machine; `template init |
// validate | add`: writes a template.json, checks one, and copies one into that folder; `template set | delete`,
// `template delete-settings`: change those of a running gateway.

import { existsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { TEMPLATE_ROWS } from '../../balancing/policy.ts';
import { makeFolders } from '../../config/make-folders.ts';
import { defaultTransport } from '../../domain/instances/transport-kinds.ts';
import { definedFields, jsonIn } from '../../domain/json/json.ts';
import { didYouMean } from '../../domain/nearest.ts';
import { ownCommand } from '../../domain/version.ts';
import type { Remark } from '../../templates/tolerant.ts';
import { type Command, type CommandInput, JSON_OPTION, type OptionTable, pairsOf } from '../command.ts';
import { CommandFailure, UsageError, writeFailure } from '../failures.ts';
import { detailLines, indentedJson, printable, printResult, type TableColumns, table } from '../output.ts';
import { replaceFile } from '../private-file.ts';
import { elementsOf, type Fields, fields, objectsOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS, WIDE_OPTION } from '../remote/client-options.ts';
import { requireGateway } from '../remote/find-gateway.ts';
import { requestCommand } from '../remote/request-command.ts';
import { ofTemplate } from '../remote/similar-names.ts';
import { readSettings } from '../setting-options.ts';
import type { TemplateAnswers } from '../template-wizard.ts';
import type { Terminal } from '../terminal.ts';

const TEMPLATE_OPTIONS: OptionTable = {
  '--local': 'Read the definitions of this machine; no gateway is asked',
  '--templates-dir <folder>': 'With --local: the folder of definitions',
  ...CLIENT_OPTIONS,
};

export const templateList: Command = {
  name: 'template list',
  summary: 'List the templates: what each is, and how many instances it has',
  options: {
    '--tag <tag>': 'Only templates with this tag',
    ...WIDE_OPTION,
    ...TEMPLATE_OPTIONS,
  },
  examples: ['template list', 'template list --tag files --local'],
  run: async (input, terminal) => {
    const records = await templatesOf(input, terminal);
    return printResult(input, terminal, { templates: records }, () =>
      records.length === 0 ? 'no template found' : table(terminal, COLUMNS, records, input),
    );
  },
};

const COLUMNS: TableColumns<Fields> = {
  TEMPLATE: 'id',
  VERSION: 'version',
  INSTANCES: 'instances',
  TAGS: 'tags',
  DESCRIPTION: 'description',
};

export const templateShow: Command = {
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
      return [detailLines(terminal, pairs), ...tables].join('\n\n');
    });
  },
};

const FIELDS = [
  ...['id', 'name', 'description', 'version', 'author', 'capabilities', 'tags', 'requires', 'ports'],
  ...['transport', 'auth', 'instances'],
];

function settingsOf({ config_schema }: Fields): readonly Fields[] {
  const { properties, required } = fields(config_schema);
  return Object.entries(fields(properties)).map(([name, property]) => ({
    ...fields(property),
    setting: name + (elementsOf(required).includes(name) ? ' (required)' : ''),
  }));
}

const SETTING_COLUMNS: TableColumns<Fields> = {
  SETTING: 'setting',
  TYPE: ({ enum: values, type, sensitive }) =>
    (Array.isArray(values) ? values : [type].flat()).join(' | ') + (sensitive === true ? ', secret' : ''),
  DEFAULT: ({ default: value }) => (typeof value === 'string' ? value : JSON.stringify(value)),
  DESCRIPTION: 'description',
};

async function templatesOf(input: CommandInput, terminal: Terminal): Promise<readonly Fields[]> {
  const tag = input.text('tag');
  if (readsLocally(input)) {
    const records = await localTemplates(input, terminal);
    return records.filter(({ tags }) => tag === undefined || elementsOf(tags).includes(tag));
  }
  const gateway = await requireGateway(input, terminal);
  const query = new URLSearchParams({ include_details: 'true', ...definedFields({ tag }) });
  const { details } = fields(await gateway.request(`/gateway/templates?${query}`));
  return objectsOf(details);
}

async function templateOf(input: CommandInput, terminal: Terminal, id: string): Promise<Fields> {
  if (!readsLocally(input)) {
    const gateway = await requireGateway(input, terminal);
    const path = `/gateway/templates/${encodeURIComponent(id)}`;
    return fields(await ofTemplate(gateway, id, () => gateway.request(path)));
  }
  const records = await localTemplates(input, terminal);
  const found = records.find((record) => record.id === id);
  if (found !== undefined) return found;
  const similar = didYouMean(
    id,
    records.map((record) => record.id),
  );
  const advice = similar ?? `"${ownCommand('template list --local')}" shows all`;
  throw new CommandFailure(`template "${id}" not found; ${advice}`);
}

function readsLocally(input: CommandInput): boolean {
  input.refuseBoth('local', 'url');
  const isLocal = input.has('local');
  if (!isLocal && input.has('templates-dir')) throw new UsageError('--templates-dir requires --local');
  return isLocal;
}

async function localTemplates(input: CommandInput, terminal: Terminal) {
  const [{ readCatalogue }, { withoutSecretDefaults }] = await Promise.all([
    import('../../templates/catalogue.ts'),
    import('../../templates/config-schema.ts'),
  ]);
  const { templatesFolder } = readSettings(input, terminal);
  const { templates, problems } = await readCatalogue(templatesFolder);
  for (const problem of problems) terminal.note(`warning: ${problem}`);
  return templates.map(({ environment, command, args, endpoint, config_schema, ...shown }) => ({
    ...shown,
    ...(config_schema === undefined ? {} : { config_schema: withoutSecretDefaults(config_schema) }),
  }));
}

export const templateInit: Command = {
  name: 'template init',
  positionals: '[id]',
  summary: 'Write a new template definition; asks for values not given as options',
  options: {
    '--description <text>': 'What the server does, in a sentence',
    '--command <line>': 'Program and its arguments; it speaks MCP over stdio',
    '--endpoint <url>': 'URL of a server that runs already',
    '--into <folder>': 'Folder in which <id>/template.json is created; default the current one',
    '--force': 'Replace an existing definition',
  },
  examples: [
    'template init search --description "Searches documents." --command "node server.js" --into drafts',
  ],
  run: async (input, terminal) => {
    const given = {
      id: input.positionals[0],
      description: input.text('description'),
      command: input.text('command'),
      endpoint: input.text('endpoint'),
    };
    if (given.command !== undefined && given.endpoint !== undefined)
      throw new UsageError('--command and --endpoint cannot be combined');
    const needed = {
      '<id>': given.id,
      '--description': given.description,
      '--command or --endpoint': given.command ?? given.endpoint,
    };
    const missing = Object.entries(needed).flatMap(([name, value]) => (value === undefined ? [name] : []));
    if (missing.length > 0 && !terminal.canAsk)
      throw new UsageError(`missing ${missing.join(', ')}: there is no terminal to ask for them`);
    // Questions go to standard error: standard output may be a file.
    const streams = { input: process.stdin, output: process.stderr };
    const answers =
      missing.length === 0
        ? given
        : await (await import('../template-wizard.ts')).askTemplate(given, streams);
    const { readTemplate, TemplateError } = await import('../../templates/definition.ts');
    const text = `${JSON.stringify(definitionOf(answers), null, 2)}\n`;
    try {
      const { id } = readTemplate(text);
      const folder = resolve(terminal.folder, input.text('into') ?? '.');
      const path = writeDefinition(folder, id, text, input.has('force'));
      terminal.print(
        `${path} is written; "${ownCommand('template add')}" puts it into the folder of templates`,
      );
      return 0;
    } catch (thrown) {
      if (thrown instanceof TemplateError) throw new UsageError(thrown.message, { cause: thrown });
      throw thrown;
    }
  },
};

function definitionOf({ id = '', name, tags = [], ...answers }: TemplateAnswers): object {
  const { description, command, endpoint } = answers;
  return {
    id,
    name: name ?? id.replaceAll('-', ' ').replace(/^./, (letter) => letter.toUpperCase()),
    description,
    version: '0.1.0',
    capabilities: ['tools'],
    tags: tags.length === 0 ? undefined : tags,
    transport: defaultTransport({ endpoint }),
    command,
    endpoint,
  };
}

export const templateValidate: Command = {
  name: 'template validate',
  positionals: '<file>',
  summary: 'Check a template definition: every violation with its JSON pointer',
  options: {
    '--strict': 'Treat warnings, such as unknown properties, as violations',
    '--tolerant': 'Read the forms of other platforms, as the gateway does, and report how each was read',
    ...JSON_OPTION,
  },
  examples: [
    'template validate drafts/search/template.json',
    'template validate drafts/search/template.json --strict',
    'template validate drafts/search/template.json --tolerant --json',
  ],
  run: async (input, terminal) => {
    const [{ validateTemplate }, { TemplateError }, { readTemplateText }] = await Promise.all([
      import('../../templates/validate.ts'),
      import('../../templates/definition.ts'),
      import('../../templates/catalogue.ts'),
    ]);
    const file = input.positional(0);
    const path = resolve(terminal.folder, file);
    const options = { isTolerant: input.has('tolerant'), folder: basename(dirname(path)) };
    const { violations, warnings, readings } = await readTemplateText(path)
      .then((text) => validateTemplate(text, options))
      .catch((thrown: unknown) => {
        if (!(thrown instanceof TemplateError)) throw thrown;
        return { violations: [{ pointer: '', message: thrown.message }], warnings: [], readings: [] };
      });
    const isStrict = input.has('strict');
    const isValid = violations.length === 0 && (warnings.length === 0 || !isStrict);
    const lineOf = ({ pointer, message }: Remark): string =>
      printable(`${file}: ${pointer === '' ? '' : `${pointer} `}${message}`);
    if (input.has('json')) terminal.print(indentedJson({ valid: isValid, violations, warnings, readings }));
    else {
      for (const reading of readings) terminal.print(`read: ${lineOf(reading)}`);
      for (const violation of violations) terminal.complain(lineOf(violation));
      for (const warning of warnings) terminal.complain(`${isStrict ? '' : 'warning: '}${lineOf(warning)}`);
      if (isValid) terminal.print(`${file} is a valid template definition`);
    }
    return isValid ? 0 : 1;
  },
};

export const templateAdd: Command = {
  name: 'template add',
  positionals: '<folder>',
  summary: 'Copy the template.json of a folder into the folder of templates, if it is valid',
  options: {
    '--templates-dir <folder>':
      'The folder of templates; default MCP_GATEWAY_TEMPLATES_DIR or templates_dir of gateway.yaml',
    '--force': 'Replace a template with the same id',
  },
  examples: ['template add drafts/search --templates-dir templates'],
  run: async (input, terminal) => {
    const [{ readTemplate, TemplateError }, { readTemplateText }] = await Promise.all([
      import('../../templates/definition.ts'),
      import('../../templates/catalogue.ts'),
    ]);
    const { templatesFolder } = readSettings(input, terminal);
    if (templatesFolder === undefined)
      throw new UsageError('missing --templates-dir <folder>; the bundled templates cannot be changed');
    const folder = resolve(terminal.folder, input.positional(0));
    const file = join(folder, 'template.json');
    try {
      const text = await readTemplateText(file);
      const { id } = readTemplate(text, basename(folder));
      const path = writeDefinition(templatesFolder, id, text, input.has('force'));
      terminal.print(`${id} is added as ${path}; a gateway reads it when it starts`);
      return 0;
    } catch (thrown) {
      if (!(thrown instanceof TemplateError)) throw thrown;
      const lines = [`${file} was not added`, ...thrown.issues];
      throw new CommandFailure(lines.join('\n'), { cause: thrown });
    }
  },
};

/** Makes `<folder>/<id>/template.json` and returns its path; replaces one only when `isForced`. Throws CommandFailure. */
function writeDefinition(folder: string, id: string, text: string, isForced: boolean): string {
  const path = join(folder, id, 'template.json');
  const mayReplace = () => isForced || !existsSync(path);
  try {
    makeFolders(dirname(path));
    if (replaceFile(path, text, 0o666 & ~process.umask(), mayReplace)) return path;
  } catch (thrown) {
    throw writeFailure(path, thrown);
  }
  throw new CommandFailure(`${path} already exists; --force replaces it`);
}

export const templateSet: Command = {
  name: 'template set',
  positionals: '<template> <setting> [...settings]',
  summary:
    'Change settings of a template, of its load balancer or `auth`, as KEY=VALUE words, objects as JSON; KEY=default restores the default',
  options: CLIENT_OPTIONS,
  examples: [
    'template set search strategy=weighted_round_robin timeout=120',
    'template set search timeout=default',
  ],
  run: async (input, terminal) => {
    const template = input.positional(0);
    const change = changeOf(pairsOf('a setting', input.positionals.slice(1)), [
      ...TEMPLATE_ROWS.map(({ name }) => name),
      'auth',
    ]);
    const { auth, ...load_balancer } = change;
    const body = { load_balancer, ...definedFields({ auth }) };
    const gateway = await requireGateway(input, terminal);
    const path = `/gateway/templates/${encodeURIComponent(template)}`;
    const answer = fields(
      await ofTemplate(gateway, template, () => gateway.request(path, { method: 'PATCH', body })),
    );
    return printResult(input, terminal, answer, () =>
      detailLines(terminal, [...Object.entries(fields(answer.load_balancer)), ['auth', answer.auth]]),
    );
  },
};

/** The change that these words make. The gateway checks the values. Throws UsageError for an unknown name. */
function changeOf(words: ReadonlyMap<string, string>, names: readonly string[]): Fields {
  const settings = [...words].map(([name, value]) => {
    if (!names.includes(name)) {
      const advice = didYouMean(name, names) ?? `the settings are ${names.join(', ')}`;
      throw new UsageError(`a template has no setting "${name}"; ${advice}`);
    }
    if (value === 'default') return [name, null];
    return [name, /^(?:-?\d|\{)/.test(value) ? (jsonIn(value) ?? value) : value];
  });
  return Object.fromEntries(settings);
}

export const templateDeleteSettings = requestCommand({
  name: 'template delete-settings',
  positionals: '<template>',
  summary:
    'Delete the settings of a template that has no instances left; "template delete" deletes its definition',
  request: (template) => ['DELETE', `/gateway/templates/${template}`],
  textOf: (template) => `the settings of ${template} are deleted`,
  record: { deleted: true },
});

export const templateDelete: Command = {
  ...requestCommand({
    name: 'template delete',
    positionals: '<template>',
    summary:
      'Delete the definition of a template, as an import stores it; its instances and its settings remain',
    request: (template) => ['DELETE', `/gateway/templates/${template}/definition`],
    textOf: (template) => `the definition of ${template} is deleted`,
    record: { deleted: true },
  }),
  examples: ['template delete docs'],
};

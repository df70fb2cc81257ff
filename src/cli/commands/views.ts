// `stagedoor view list | show | set | delete | preview`: servers that are made of choices from templates.

import { resolve } from 'node:path';
import { messageOf } from '../../domain/errors/errors.ts';
import { isDeeper, isJsonObject, type JsonObject } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { isTemplateId, TEMPLATE_RULE } from '../../domain/template-name.ts';
import { counted } from '../../domain/text.ts';
import { ownCommand } from '../../domain/version.ts';
import type { Command } from '../command.ts';
import { CommandFailure } from '../failures.ts';
import { minute, printable, printResult, type TableColumns, table } from '../output.ts';
import { type Fields, fields, objectsOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS } from '../remote/client-options.ts';
import { requireGateway } from '../remote/find-gateway.ts';
import { ofTemplate } from '../remote/similar-names.ts';
import type { Terminal } from '../terminal.ts';
import { fileText, standardInput } from './template-import.ts';

const PATH = '/gateway/views';

export const viewList: Command = {
  name: 'view list',
  summary: 'List the views: MCP servers that are made of choices from templates',
  options: CLIENT_OPTIONS,
  examples: ['view list', 'view list --json'],
  run: async (input, terminal) => {
    const found = objectsOf(fields(await (await requireGateway(input, terminal)).request(PATH)).views);
    return printResult(input, terminal, { views: found }, () =>
      found.length === 0
        ? `no view exists; "${ownCommand('view set <file>')}" makes one`
        : table(terminal, COLUMNS, found),
    );
  },
};

const COLUMNS: TableColumns<Fields> = {
  ID: 'id',
  TITLE: ({ title }) => title ?? '-',
  TEMPLATES: ({ from }) =>
    objectsOf(from)
      .map(({ template }) => template)
      .join(', '),
  PROBLEMS: ({ problems }) => objectsOf(problems).length,
  CHANGED: ({ updated_at: at }) => minute(at),
};

export const viewShow: Command = {
  name: 'view show',
  positionals: '<id>',
  summary: 'Show the definition of a view as YAML, which "view set" takes back, and what is wrong with it',
  options: CLIENT_OPTIONS,
  examples: ['view show support', 'view show support > support.yaml'],
  run: async (input, terminal) => {
    const gateway = await requireGateway(input, terminal);
    const id = input.positional(0);
    const record = fields(await ofTemplate(gateway, id, () => gateway.request(pathOf(id))));
    // The writer of YAML visits the levels by recursion.
    if (isDeeper(record, LIMITS.nestingDepth))
      throw new CommandFailure(
        `the answer of ${gateway.url} is not a view: it has more than ${LIMITS.nestingDepth} levels`,
      );
    for (const line of problemLines(record)) terminal.complain(line);
    const { problems: _, updated_at: __, etag: ___, ...definition } = record;
    const { stringify } = await import('yaml');
    return printResult(input, terminal, record, () => stringify(definition).trimEnd());
  },
};

export const viewSet: Command = {
  name: 'view set',
  positionals: '<file>',
  summary: 'Create or replace a view from a file of YAML or JSON; - is standard input',
  options: CLIENT_OPTIONS,
  examples: ['view set support.yaml', 'view show support | stagedoor view set -'],
  run: async (input, terminal) => {
    const definition = await definitionIn(input.positional(0), terminal);
    const { id } = definition;
    if (typeof id !== 'string')
      throw new CommandFailure('the view has no id: add one, such as "id: support"');
    if (!isTemplateId(id)) throw new CommandFailure(`the id of a view has ${TEMPLATE_RULE}`);
    const gateway = await requireGateway(input, terminal);
    const record = fields(await gateway.request(pathOf(id), { method: 'PUT', body: definition }));
    return printResult(input, terminal, record, () =>
      [`the view ${id} is served at /mcp/${id}`, ...problemLines(record)].join('\n'),
    );
  },
};

export const viewDelete: Command = {
  name: 'view delete',
  positionals: '<id>',
  summary: 'Delete a view; its templates stay',
  options: CLIENT_OPTIONS,
  examples: ['view delete support'],
  run: async (input, terminal) => {
    const id = input.positional(0);
    const gateway = await requireGateway(input, terminal);
    await ofTemplate(gateway, id, () => gateway.request(pathOf(id), { method: 'DELETE' }));
    return printResult(input, terminal, { id, deleted: true }, `the view ${id} is deleted`);
  },
};

export const viewPreview: Command = {
  name: 'view preview',
  positionals: '<id>',
  summary: 'Show what a view lists, and the tokens that the list takes',
  options: CLIENT_OPTIONS,
  examples: ['view preview support'],
  run: async (input, terminal) => {
    const gateway = await requireGateway(input, terminal);
    const id = input.positional(0);
    const preview = fields(await ofTemplate(gateway, id, () => gateway.request(`${pathOf(id)}/preview`)));
    const tools = objectsOf(preview.tools);
    return printResult(input, terminal, preview, () => {
      const rows = table(
        terminal,
        { TOOL: 'name', DESCRIPTION: ({ description }) => firstLine(description) },
        tools,
      );
      const size = `\n${counted(tools.length, 'tool')}, about ${counted(Number(preview.tokens), 'token')}`;
      const listed = tools.length === 0 ? ['no tools'] : [rows, size];
      return [...listed, ...confirmedLine(preview), ...problemLines(preview)].join('\n');
    });
  },
};

function pathOf(id: string): string {
  return `${PATH}/${encodeURIComponent(id)}`;
}

function confirmedLine({ asks }: Fields): readonly string[] {
  const names = Array.isArray(asks) ? asks : [];
  return names.length === 0 ? [] : [`the user confirms: ${names.map(String).join(', ')}`];
}

function problemLines({ problems }: Fields): readonly string[] {
  return objectsOf(problems).map(({ message }) => `problem: ${printable(String(message))}`);
}

function firstLine(description: unknown): string {
  const [line = ''] = String(description ?? '').split('\n');
  return line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}...` : line;
}

const MAX_LINE = 80;

/** The definition in a file of YAML or JSON: JSON is YAML, too. */
async function definitionIn(file: string, { folder }: Terminal): Promise<JsonObject> {
  const text = file === '-' ? await standardInput() : await fileText(resolve(folder, file));
  const { readYaml } = await import('../../config/yaml.ts');
  let value: unknown;
  try {
    value = readYaml(text).value;
  } catch (error) {
    throw new CommandFailure(`${file} is not YAML: ${messageOf(error)}`, { cause: error });
  }
  if (isJsonObject(value)) return value;
  throw new CommandFailure(`${file} is not the definition of a view in YAML or JSON`);
}

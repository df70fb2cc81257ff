// A template definition, templates/<id>/template.json, which describes a kind of MCP server, and its placeholders: names in
// `${...}` that are filled when an instance is made. Finding the files is catalogue.ts; making an instance is launch.ts.

import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/schema';
import { splitCommand } from '../domain/command.ts';
import { messageOf } from '../domain/errors.ts';
import { TemplateId } from '../domain/template.ts';
import { issuesOf, pathTo } from '../domain/validation.ts';
import { tolerated } from './tolerant.ts';

const Texts = Type.Array(Type.String());
const Text = Type.String({ minLength: 1 });

/**
 * The file. The first ten fields are the spec's; `command`, `args`, `transport`, `endpoint`, `docker_image` and `config_schema` say how
 * an instance is reached. Other fields are tolerated and dropped. `command`, `args` and `environment` may hold
 * placeholders.
 */
export const TemplateFile = Type.Object({
  id: TemplateId,
  name: Text,
  description: Text,
  version: Type.String({ pattern: '^\\d+\\.\\d+\\.\\d+$' }),
  author: Type.Optional(Type.String()),
  /** Runtime requirements, such as `node>=20`. */
  requires: Type.Optional(Texts),
  ports: Type.Optional(Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }))),
  /** Default environment of the command. */
  environment: Type.Optional(
    Type.Record(Type.String({ pattern: '^[A-Z][A-Z0-9_]*$' }), Type.String(), {
      additionalProperties: false,
    }),
  ),
  capabilities: Type.Optional(Type.Array(Type.Enum(['read', 'write', 'tools', 'resources', 'prompts']))),
  tags: Type.Optional(Texts),
  command: Type.Optional(Text),
  args: Type.Optional(Texts),
  transport: Type.Optional(Type.Enum(['http', 'sse', 'stdio'])),
  endpoint: Type.Optional(Text),
  /** Image of the containers that it runs in, with its tag: `command` is run there, not on this machine. */
  docker_image: Type.Optional(Text),
  /** JSON Schema of the settings an instance takes; kept as it is. */
  config_schema: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
export type TemplateDefinition = Static<typeof TemplateFile>;

/** The fields that apply to its instances, however these were registered. */
export type TemplateRules = Pick<
  TemplateDefinition,
  'id' | 'environment' | 'requires' | 'ports' | 'command' | 'args' | 'transport'
>;

/** A definition that cannot be used. `issues` has one line per fault, `message` all of them. */
export class TemplateError extends Error {
  readonly issues: readonly string[];

  constructor(issues: readonly string[], cause?: unknown) {
    super(issues.join('; '), cause === undefined ? undefined : { cause });
    this.name = 'TemplateError';
    this.issues = issues;
  }
}

const templateFile = Compile(TemplateFile);
const fields = Object.keys(TemplateFile.properties);

/**
 * Reads the text of a template.json, also in the forms that other platforms write (tolerant.ts); `folder` is the name of its
 * folder. Throws TemplateError with every fault, not only the first.
 */
export function readTemplate(text: string, folder?: string): TemplateDefinition {
  const { value } = tolerated(parseTemplate(text), folder);
  if (!templateFile.Check(value)) throw new TemplateError(issuesOf(templateFile.Errors(value)[1]));
  const issues = [...faultsOfCommand(value), ...faultsOfSchema(value)];
  if (issues.length > 0) throw new TemplateError(issues);
  const known = Object.fromEntries(Object.entries(value).filter(([field]) => fields.includes(field)));
  return templateFile.Parse(known);
}

/** Rules that the schema cannot express: unmatched quotes, and placeholders that nothing fills. */
function faultsOfCommand({ command, args = [], environment = {} }: TemplateDefinition): string[] {
  const issues: string[] = [];
  const split = splitCommand(command ?? '');
  if ('problem' in split) issues.push(`command: ${split.problem}`);
  const texts: [string, string][] = [
    ['command', command ?? ''],
    ...args.map((text, index): [string, string] => [pathTo('args', index), text]),
    ...Object.entries(environment).map(([name, text]): [string, string] => [
      pathTo('environment', name),
      text,
    ]),
  ];
  for (const [path, text] of texts) {
    for (const [name] of text.matchAll(PLACEHOLDER))
      if (name !== SCRATCH) issues.push(`${path}: nothing fills the placeholder ${name}`);
  }
  return issues;
}

/** Settings are checked with the schema; a pattern that is no regular expression cannot be compiled. */
function faultsOfSchema({ config_schema = {} }: TemplateDefinition): string[] {
  try {
    Compile(Type.Unsafe(config_schema));
    return [];
  } catch (thrown) {
    return [`config_schema: ${messageOf(thrown)}`];
  }
}

/** The value of the text. Throws TemplateError, in one line that repeats nothing. */
export function parseTemplate(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (thrown) {
    // The message quotes the text around the mistake, line breaks included.
    throw new TemplateError([`not JSON: ${messageOf(thrown).replace(/, (\.\.\.)?".*/s, '')}`], thrown);
  }
}

/** The only placeholder that has a value: the absolute path of an empty folder that only this instance uses. */
const SCRATCH = `\${SCRATCH}`;
const PLACEHOLDER = /\$\{[A-Z][A-Z0-9_]*\}/g;

/** Fills the placeholders of a text. Anything else, `$HOME` or `${lower}`, stays as it is. */
export function fillPlaceholders(text: string, scratch: string): string {
  return text.replaceAll(SCRATCH, () => scratch);
}

export function hasPlaceholder(text: string): boolean {
  return text.match(PLACEHOLDER) !== null;
}

// A template definition, templates/<id>/template.json, which describes a kind of MCP server, and its placeholders: names
// in `${...}` that are filled when an instance is made. catalogue.ts finds the files; launch.ts makes an instance.

import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/schema';
import { LoadBalancerSettings } from '../balancing/policy-schemas.ts';
import { TemplateId } from '../domain/accounts/input-schemas.ts';
import { GatewayError, messageOf } from '../domain/errors/errors.ts';
import { compileShape, issueLines, pathTo } from '../domain/errors/validation.ts';
import { commandWords } from '../domain/instances/command.ts';
import { TemplateAuth } from '../domain/instances/instance.ts';
import { REGISTRABLE_KINDS } from '../domain/instances/transport-kinds.ts';
import { isDeeper, uniqueKeySteps } from '../domain/json/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { checkedTemplateAuth } from '../domain/registration/registration.ts';
import { tolerated } from './tolerant.ts';

const Texts = Type.Array(Type.String());
const Text = Type.String({ minLength: 1 });

/**
 * The form of the file. `command`, `args`, `transport`, `endpoint`, `docker_image` and `config_schema` tell how an
 * instance is reached. Unknown fields are accepted and dropped. `command`, `args` and `environment` may contain
 * placeholders.
 */
export const TemplateFile = Type.Object({
  id: TemplateId,
  name: Text,
  description: Text,
  version: Type.String({ pattern: '^\\d+\\.\\d+\\.\\d+$' }),
  author: Type.Optional(Type.String()),
  /** The requirements at run time, such as `node>=20`. */
  requires: Type.Optional(Texts),
  ports: Type.Optional(Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }))),
  /** The default environment of the command. */
  environment: Type.Optional(
    Type.Record(Type.String({ pattern: '^[A-Z][A-Z0-9_]*$' }), Type.String(), {
      additionalProperties: false,
    }),
  ),
  capabilities: Type.Optional(Type.Array(Type.Enum(['read', 'write', 'tools', 'resources', 'prompts']))),
  tags: Type.Optional(Texts),
  command: Type.Optional(Text),
  args: Type.Optional(Texts),
  transport: Type.Optional(Type.Enum(REGISTRABLE_KINDS)),
  endpoint: Type.Optional(Text),
  /** The image, with its tag, of the containers in which `command` runs instead of on this machine. */
  docker_image: Type.Optional(Text),
  /** The defaults of the template, over those of the gateway. */
  load_balancer: Type.Optional(LoadBalancerSettings),
  /** The authentication of instances of the template without an own `auth`. It has no credentials: those are of an instance. */
  auth: Type.Optional(TemplateAuth),
  /** The JSON Schema of the settings of an instance; not changed. */
  config_schema: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
export type TemplateDefinition = Static<typeof TemplateFile>;

/** The fields that apply to its instances, whatever registered them. */
export type TemplateRules = Pick<
  TemplateDefinition,
  | 'id'
  | 'environment'
  | 'config_schema'
  | 'requires'
  | 'ports'
  | 'command'
  | 'args'
  | 'transport'
  | 'load_balancer'
  | 'auth'
>;

/** An unusable definition. `issues` has one line per fault, `message` all of them. */
export class TemplateError extends Error {
  readonly issues: readonly string[];

  constructor(issues: readonly string[], cause?: unknown) {
    super(issues.join('; '), cause === undefined ? undefined : { cause });
    this.name = 'TemplateError';
    this.issues = issues;
  }
}

const templateFile = compileShape(TemplateFile, 'body');
const fields = Object.keys(TemplateFile.properties);

/**
 * Reads the text of a template.json, including the forms of other platforms (tolerant.ts); `folder` is the
 * name of its folder. Throws TemplateError with all faults.
 */
export function readTemplate(text: string, folder?: string): TemplateDefinition {
  return definitionOf(parseTemplate(text), folder);
}

/** The definition in the value of such a text. See `readTemplate`. */
export function definitionOf(written: unknown, folder?: string): TemplateDefinition {
  const { value } = tolerated(written, folder);
  if (!templateFile.accepts(value)) throw new TemplateError(issueLines(templateFile.issues(value)));
  const issues = [...faultsOfCommand(value), ...faultsOfSchema(value), ...faultsOfAuth(value)];
  if (issues.length > 0) throw new TemplateError(issues);
  const known = Object.entries(value).filter(([field]) => fields.includes(field));
  return Object.fromEntries(known) as TemplateDefinition;
}

/** The faults of a command by rules that the schema cannot express: unmatched quotes, and placeholders without a value. */
function faultsOfCommand(definition: TemplateDefinition): string[] {
  const { command = '', args = [], environment = {} } = definition;
  const issues: string[] = [];
  const split = commandWords(definition);
  if ('problem' in split) issues.push(`command: ${split.problem}`);
  const texts: [string, string][] = [
    ['command', command],
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

function faultsOfAuth({ auth }: TemplateDefinition): string[] {
  if (auth === undefined) return [];
  try {
    checkedTemplateAuth(auth, ['auth']);
    return [];
  } catch (thrown) {
    return thrown instanceof GatewayError ? issueLines(thrown.facts.items ?? []) : [messageOf(thrown)];
  }
}

/** The faults of the schema, which checks settings: a pattern that is not a regular expression cannot be compiled. */
function faultsOfSchema({ config_schema = {} }: TemplateDefinition): string[] {
  try {
    Compile(Type.Unsafe(config_schema));
    return [];
  } catch (thrown) {
    return [`config_schema: ${thrown instanceof RangeError ? 'too large' : messageOf(thrown)}`];
  }
}

/** The value of the text. Throws TemplateError with one line that repeats nothing of the text. */
export function parseTemplate(text: string): unknown {
  const body = text.replace(/^\uFEFF/, '');
  try {
    const value: unknown = JSON.parse(body);
    for (const _ of uniqueKeySteps(body));
    if (!isDeeper(value, LIMITS.nestingDepth)) return value;
  } catch (thrown) {
    // The message quotes the text around the error, including line breaks.
    throw new TemplateError([`not JSON: ${messageOf(thrown).replace(/, (\.\.\.)?".*/s, '')}`], thrown);
  }
  throw new TemplateError([`nested deeper than ${LIMITS.nestingDepth} levels`]);
}

/** The only placeholder with a value: the absolute path of an empty folder for this instance alone, which
 * `gateway start --demo` creates.
 */
export const SCRATCH = `\${SCRATCH}`;
const PLACEHOLDER = /\$\{[A-Z][A-Z0-9_]*\}/g;

/** Fills the placeholders of a text. Other text, such as `$HOME` or `${lower}`, is kept. */
export function fillPlaceholders(text: string, scratch: string): string {
  return text.replaceAll(SCRATCH, () => scratch);
}

export function hasPlaceholder(text: string): boolean {
  return text.match(PLACEHOLDER) !== null;
}

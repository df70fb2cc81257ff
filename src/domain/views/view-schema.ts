// The schema of a view's definition, and the rules that a schema cannot say: what the definition alone shows
// wrong. What depends on the lists of servers is a problem of the view, not an error
// (protocol/aggregate/views/view-problems.ts).

import Type from 'typebox';
import { GLOB_LIMITS, globIssue } from '../accounts/globs.ts';
import { TemplateId } from '../accounts/input-schemas.ts';
import type { ValidationItem } from '../errors/errors.ts';
import { validationFailed } from '../errors/request-errors.ts';
import { compileShape, inspect, inspectNumbers } from '../errors/validation.ts';
import { isJsonObject, type JsonObject } from '../json/json.ts';
import type { ViewDefinition } from './view.ts';

/** Bytes of a definition as JSON. */
const MAX_VIEW_BYTES = 256 * 1024;
const MAX_SOURCES = 100;
const MAX_TOOLS = 1_000;
/** Characters of listed names: see `name_length`. */
const NAME_LENGTHS = { least: 32, most: 64 } as const;

const CLOSED = { additionalProperties: false };
const Globs = Type.Array(Type.String({ minLength: 1, maxLength: GLOB_LIMITS.units }), {
  maxItems: GLOB_LIMITS.count,
  examples: [['issues_*', '!issues_delete']],
});
const Choice = Type.Union([Type.Enum(['all', 'none']), Globs], { examples: ['none'] });
const Flag = Type.Optional(Type.Boolean());
const optionalText = (maxLength: number, example: string) =>
  Type.Optional(Type.String({ maxLength, examples: [example] }));

const Hints = Type.Object({ readOnly: Flag, destructive: Flag, idempotent: Flag, openWorld: Flag }, CLOSED);

/** See ToolHints. */
export const ToolAnnotations = Type.Object(
  {
    title: optionalText(256, 'List tickets'),
    readOnlyHint: Flag,
    destructiveHint: Flag,
    idempotentHint: Flag,
    openWorldHint: Flag,
  },
  CLOSED,
);

function byTool<S extends Type.TSchema>(schema: S, example: unknown) {
  const names = Type.String({ pattern: '^[\\s\\S]*$' }); // that of any string leaves out line breaks
  return Type.Optional(
    Type.Record(names, schema, { ...CLOSED, maxProperties: MAX_TOOLS, examples: [example] }),
  );
}

const NewName = Type.String({ pattern: `^[A-Za-z0-9_-]{1,${NAME_LENGTHS.most}}$`, examples: ['say'] });

const Source = Type.Object(
  {
    template: TemplateId,
    tools: Type.Optional(Globs),
    only: Type.Optional(Hints),
    resources: Type.Optional(Choice),
    prompts: Type.Optional(Choice),
    rename: byTool(NewName, { echo: 'say' }),
    describe: byTool(Type.String({ maxLength: 8_192 }), { say: 'Says it again.' }),
    annotate: byTool(ToolAnnotations, { say: { readOnlyHint: true } }),
    defaults: byTool(Type.Unsafe<JsonObject>(Type.Object({})), { say: { message: 'hello' } }),
  },
  { ...CLOSED, examples: [{ template: 'everything', tools: ['echo', 'get-*'], rename: { echo: 'say' } }] },
);

const Limit = Type.Object(
  {
    timeout: Type.Optional(Type.Number({ minimum: 0.1, maximum: 3_600, examples: [60] })),
    result_bytes: Type.Optional(
      Type.Integer({ minimum: 1_000, maximum: 64 * 1024 * 1024, examples: [200_000] }),
    ),
    calls_per_minute: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, examples: [30] })),
  },
  { ...CLOSED, minProperties: 1 },
);

/** The keys of a definition, without its id. */
export const VIEW_FIELDS = {
  title: optionalText(256, 'Support desk'),
  description: optionalText(4_096, 'What the support team needs'),
  instructions: optionalText(65_536, 'Use say to repeat a text.'),
  from: Type.Array(Source, { minItems: 1, maxItems: MAX_SOURCES }),
  names: Type.Optional(Type.Enum(['bare', 'prefixed'])),
  name_length: Type.Optional(
    Type.Integer({ minimum: NAME_LENGTHS.least, maximum: NAME_LENGTHS.most, examples: [64] }),
  ),
  mode: Type.Optional(Type.Enum(['list', 'search'])),
  always: Type.Optional(Globs),
  limits: byTool(Limit, { say: { timeout: 60 } }),
  approve: Type.Optional(Type.Enum(['none', 'pinned'])),
  confirm: Type.Optional(Globs),
  version: optionalText(128, '1'),
};

/** A definition, whose `id` may be left out where the path names it. */
export const ViewBody = Type.Object({ id: Type.Optional(TemplateId), ...VIEW_FIELDS }, CLOSED);

const shape = compileShape(Type.Object({ id: TemplateId, ...VIEW_FIELDS }, CLOSED), 'body');

/** The issues of a definition, with the `loc` of each; none of a valid one. `value` may be anything that is JSON. */
export function viewIssues(value: unknown): ValidationItem[] {
  const texts = inspect(value);
  if (texts.length > 0) return texts;
  if (!shape.accepts(value)) return shape.issues(value);
  const definition: ViewDefinition = value as ViewDefinition;
  const numbers = inspectNumbers(value);
  if (numbers.length > 0) return numbers;
  if (Buffer.byteLength(JSON.stringify(value)) > MAX_VIEW_BYTES)
    return [issue([], `A view should have at most ${MAX_VIEW_BYTES} bytes`)];
  return [...globIssues(definition), ...sourceIssues(definition), ...renameIssues(definition)];
}

/** The definition. `id`: the one that it must have. Throws VALIDATION_ERROR. */
export function checkedView(value: unknown, id?: string): ViewDefinition {
  const issues = viewIssues(value);
  if (issues.length === 0 && id !== undefined && (value as ViewDefinition).id !== id)
    issues.push(issue(['id'], `the id is ${id} in the path`));
  if (issues.length > 0) throw validationFailed(issues, 'The view');
  return value as ViewDefinition;
}

function issue(at: readonly (string | number)[], msg: string): ValidationItem {
  return { loc: ['body', ...at], msg: `Value error, ${msg}`, type: 'value_error' };
}

function globIssues({ from }: ViewDefinition): ValidationItem[] {
  return from.flatMap((source, index) =>
    (['tools', 'resources', 'prompts'] as const).flatMap((field) => {
      const globs = source[field] ?? [];
      if (typeof globs === 'string') return [];
      return globs.flatMap((glob, at) => {
        const found = globIssue(glob);
        return found === undefined ? [] : { loc: ['body', 'from', index, field, at], ...found };
      });
    }),
  );
}

/** A template is named once: two entries could choose one tool twice. */
function sourceIssues({ id, from }: ViewDefinition): ValidationItem[] {
  const seen = new Set<string>();
  return from.flatMap(({ template }, index) => {
    const at = ['from', index, 'template'];
    if (template === id) return issue(at, 'a view is made of templates, not of itself');
    return seen.size === seen.add(template).size ? issue(at, `the template ${template} is named twice`) : [];
  });
}

function renameIssues({ from, names = 'bare', name_length: most = NAME_LENGTHS.most }: ViewDefinition) {
  const seen = new Set<string>();
  return from.flatMap(({ template, rename = {} }, index) =>
    Object.entries(rename).flatMap(([own, name]) => {
      const at = ['from', index, 'rename', own];
      const key = names === 'bare' ? name : `${template} ${name}`;
      if (name.length > most) return issue(at, `a name should have at most ${most} characters`);
      return seen.size === seen.add(key).size ? issue(at, `two tools would be named ${name}`) : [];
    }),
  );
}

/** `value` with this id, if it is an object without one. */
export function withViewId(value: unknown, id: string): unknown {
  return isJsonObject(value) && value.id === undefined ? { id, ...value } : value;
}

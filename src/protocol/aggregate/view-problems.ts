// What is wrong with a view now, by the lists of its templates: choices and changes that meet nothing, and names that were taken.

import { globMeets } from '../../domain/globs.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import type { ListField } from '../../domain/mcp.ts';
import type { ViewProblem, ViewProblemCode, ViewSource } from '../../domain/view.ts';
import { KEY_FIELDS } from './aggregate-items.ts';
import type { GatheredList } from './aggregate-lists.ts';
import type { ChosenItem, CompiledView } from './view-choices.ts';

/** One list of a view, as it is now. */
export interface Survey {
  readonly gathered: readonly GatheredList[];
  readonly chosen: readonly ChosenItem[];
  /** The name of each chosen item, in their order. */
  readonly listed: readonly string[];
  readonly displaced: readonly ChosenItem[];
  /** What the view has and does not list. */
  readonly waiting: ReadonlyMap<ChosenItem, Waiting>;
}

/** A tool waits for approval. */
export interface Waiting {
  /** A clause. */
  readonly reason: string;
  /** Another definition of it is approved. */
  readonly hasApproved: boolean;
}

export interface Surveys {
  readonly tools: Survey;
  readonly prompts: Survey;
  readonly resources: Pick<Survey, 'gathered'>;
}

/** `kindOf`: what has that name. At most MOST problems. */
export function viewProblems(
  { definition }: CompiledView,
  surveys: Surveys,
  kindOf: (name: string) => 'template' | 'view' | undefined,
): ViewProblem[] {
  const problems = definition.from.flatMap((source) => {
    const { template } = source;
    const kind = kindOf(template);
    if (kind === undefined)
      return problem('template_unknown', template, '', `There is no template ${quote(template)}.`);
    if (kind === 'view')
      return problem('template_unknown', template, '', `${quote(template)} is a view: name its templates.`);
    const reason = surveys.tools.gathered.find((each) => each.template === template)?.missing;
    if (reason !== undefined)
      return problem('template_missing', template, '', `The tools of ${template} are missing: ${reason}`);
    return [...globProblems(source, surveys), ...changeProblems(source, surveys.tools)];
  });
  const names = (['tools', 'prompts'] as const).flatMap((list) => nameProblems(surveys[list]));
  const listed = new Set(surveys.tools.listed);
  const limits = Object.keys(definition.limits ?? {}).filter((name) => !listed.has(name));
  const unmet = limits.map((name) =>
    problem('limit_unmet', '', name, `There is a limit for ${quote(name)}, and no such tool is listed.`),
  );
  const always = (definition.always ?? []).filter(
    (glob) => !surveys.tools.listed.some((name) => globMeets(glob, name)),
  );
  const unlisted = always.map((glob) =>
    problem('always_unmet', '', '', `The glob ${quote(glob)} of always matches no listed tool.`),
  );
  const withheld = [...surveys.tools.waiting].map(([{ template, own }, { reason }]) =>
    problem('tool_withheld', template, own, `${own} of ${template} is withheld: ${reason}.`),
  );
  const { chosen } = surveys.tools;
  const wishes = definition.names === 'prefixed' ? [] : chosen.map(({ wished }) => wished);
  const asked = [...listed, ...wishes];
  const unasked = (definition.confirm ?? []).filter((glob) => !asked.some((name) => globMeets(glob, name)));
  const confirm = unasked.map((glob) =>
    problem(
      'confirm_unmet',
      '',
      '',
      `\`confirm\` has the glob ${quote(glob)}, which matches no listed tool.`,
    ),
  );
  return [...problems, ...names, ...unmet, ...unlisted, ...withheld, ...confirm].slice(0, MOST);
}

const MOST = 1_000;
const SKILL_GLOB = /^!?skill:\/\//;

function problem(code: ViewProblemCode, template: string, tool: string, message: string): ViewProblem {
  return { code, template, tool, message };
}

function quote(text: string): string {
  return JSON.stringify(text);
}

function itemsOf({ gathered }: Pick<Survey, 'gathered'>, template: string): readonly JsonObject[] {
  return gathered.find((each) => each.template === template)?.items ?? [];
}

function globProblems(source: ViewSource, surveys: Surveys): ViewProblem[] {
  const { template } = source;
  return (['tools', 'prompts', 'resources'] as const).flatMap((list) => {
    const globs = source[list];
    if (globs === undefined || typeof globs === 'string') return [];
    const names = itemsOf(surveys[list], template).map((item) => keyOf(list, item));
    // Skills are no part of the list of resources.
    const judged = list === 'resources' ? globs.filter((glob) => !SKILL_GLOB.test(glob)) : globs;
    const unmet = judged.filter((glob) => !names.some((name) => globMeets(glob, name)));
    return unmet.map((glob) =>
      problem(
        'glob_unmet',
        template,
        '',
        `The glob ${quote(glob)} matches none of the ${list} of ${template}.`,
      ),
    );
  });
}

function keyOf(list: ListField, item: JsonObject): string {
  return String(item[KEY_FIELDS[list]]);
}

function changeProblems(source: ViewSource, tools: Survey): ViewProblem[] {
  const { template, rename = {}, describe = {}, annotate = {}, defaults = {} } = source;
  const all = [...tools.chosen, ...tools.waiting.keys()];
  const chosen = all.filter((item) => item.template === template);
  const own = new Set(chosen.map((item) => item.own));
  const byName = new Map(chosen.map((item) => [item.wished, item]));
  const unmet = (
    code: ViewProblemCode,
    what: string,
    names: readonly string[],
    known: { has(name: string): boolean },
  ) =>
    names
      .filter((name) => !known.has(name))
      .map((name) =>
        problem(
          code,
          template,
          name,
          `There is ${what} for ${quote(name)}, and the view has no such tool of ${template}.`,
        ),
      );
  return [
    ...unmet('rename_unmet', 'a new name', Object.keys(rename), own),
    ...unmet('describe_unmet', 'a description', Object.keys(describe), byName),
    ...unmet('annotate_unmet', 'an annotation', Object.keys(annotate), byName),
    ...unmet('default_unmet', 'a default', Object.keys(defaults), byName),
    ...Object.entries(defaults).flatMap(([name, values]) => {
      const item = itemsOf(tools, template).find((each) => each.name === byName.get(name)?.own);
      return item === undefined
        ? []
        : argumentProblems(template, name, Object.keys(values), item.inputSchema);
    }),
  ];
}

function argumentProblems(
  template: string,
  tool: string,
  names: readonly string[],
  inputSchema: unknown,
): ViewProblem[] {
  const schema = isJsonObject(inputSchema) ? inputSchema : {};
  const { properties, required: _, ...others } = schema;
  const known = isJsonObject(properties) ? properties : {};
  const rules = JSON.stringify(others);
  return names.flatMap((name) => {
    const shown = quote(name);
    const found: ViewProblem[] = [];
    if (!Object.hasOwn(known, name))
      found.push(
        problem('default_unknown_argument', template, tool, `The tool ${tool} has no argument ${shown}.`),
      );
    if (rules.includes(shown) || '$ref' in others)
      found.push(
        problem(
          'default_in_schema',
          template,
          tool,
          `The schema of ${tool} may mention its argument ${shown} outside of its properties: clients see that.`,
        ),
      );
    return found;
  });
}

function nameProblems({ chosen, listed, displaced }: Survey): ViewProblem[] {
  return displaced.map((item) => {
    const name = listed[chosen.indexOf(item)] ?? '';
    const { template, own, wished } = item;
    const message = `${own} of ${template} is listed as ${name}, because ${quote(wished)} is the name of another one, or several want it.`;
    return problem('name_taken', template, own, message);
  });
}

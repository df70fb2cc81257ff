// The present problems of a view, by the lists of its templates: choices and changes that match nothing, and names that were
// taken.

import { compileGlob, groupsToMatch } from '../../../domain/accounts/globs.ts';
import { isJsonObject, type JsonObject } from '../../../domain/json/json.ts';
import type { ListField } from '../../../domain/mcp/mcp.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import type { ViewProblem, ViewProblemCode, ViewSource } from '../../../domain/views/view.ts';
import { KEY_FIELDS } from '../lists/acceptable-items.ts';
import type { GatheredList } from '../lists/aggregate-lists.ts';
import type { ChosenItem, CompiledView } from './compiled-view.ts';

/** The present items of one list of a view. */
export interface Survey {
  readonly gathered: readonly GatheredList[];
  readonly chosen: readonly ChosenItem[];
  /** The name of each chosen item, in their order. */
  readonly listed: readonly string[];
  readonly displaced: readonly ChosenItem[];
  /** The items that the view has and does not list. */
  readonly waiting: ReadonlyMap<ChosenItem, Waiting>;
}

/** A tool waits for approval. */
export interface Waiting {
  /** Why it waits, as a clause. */
  readonly reason: string;
  /** True when another definition of it is approved. */
  readonly hasApproved: boolean;
}

interface Surveys {
  readonly tools: Survey;
  readonly prompts: Survey;
  readonly resources: Pick<Survey, 'gathered'>;
}

/**
 * The problems of a view, at most MAX_PROBLEMS. `kindOf`: the kind of thing that has a name; `empty`: a template without
 * instances. Takes several turns of the event loop.
 */
export async function viewProblems(
  { definition }: CompiledView,
  surveys: Surveys,
  kindOf: (name: string) => 'template' | 'empty' | 'view' | undefined,
  scheduler: TaskScheduler,
): Promise<ViewProblem[]> {
  const problems: ViewProblem[] = [];
  for (const source of definition.from) {
    const { template } = source;
    const kind = kindOf(template);
    const reason = surveys.tools.gathered.find((each) => each.template === template)?.missing;
    if (kind === undefined)
      problems.push(problem('template_unknown', `There is no template ${quote(template)}.`, { template }));
    else if (kind === 'view')
      problems.push(
        problem('template_unknown', `${quote(template)} is a view: name its templates.`, { template }),
      );
    else if (kind === 'empty')
      problems.push(
        problem('template_missing', `The template ${quote(template)} has no instances.`, { template }),
      );
    else if (reason !== undefined)
      problems.push(
        problem('template_missing', `The tools of ${template} are missing: ${reason}`, { template }),
      );
    else
      problems.push(
        ...(await globProblems(source, surveys, scheduler)),
        ...(await changeProblems(source, surveys.tools, scheduler)),
      );
  }
  const names = (['tools', 'prompts'] as const).flatMap((list) => nameProblems(surveys[list]));
  const listed = new Set(surveys.tools.listed);
  const limits = Object.keys(definition.limits ?? {}).filter((name) => !listed.has(name));
  const unmet = limits.map((tool) =>
    problem('limit_unmet', `There is a limit for ${quote(tool)}, and no such tool is listed.`, { tool }),
  );
  const always = await unmetGlobs(definition.always ?? [], surveys.tools.listed, scheduler);
  const unlisted = always.map((glob) =>
    problem('always_unmet', `The glob ${quote(glob)} of always matches no listed tool.`),
  );
  const withheld = [...surveys.tools.waiting].map(([{ template, own }, { reason }]) =>
    problem('tool_withheld', `${own} of ${template} is withheld: ${reason}.`, { template, tool: own }),
  );
  const { chosen } = surveys.tools;
  const wishes = definition.names === 'prefixed' ? [] : chosen.map(({ wished }) => wished);
  const asked = [...listed, ...wishes];
  const unasked = await unmetGlobs(definition.confirm ?? [], asked, scheduler);
  const confirm = unasked.map((glob) =>
    problem('confirm_unmet', `\`confirm\` has the glob ${quote(glob)}, which matches no listed tool.`),
  );
  return [...problems, ...names, ...unmet, ...unlisted, ...withheld, ...confirm].slice(0, MAX_PROBLEMS);
}

const MAX_PROBLEMS = 1_000;
const JSON_STRINGS = /"(?:[^"\\]|\\.)*"/g;
const SKILL_GLOB = /^!?skill:\/\//;

function problem(
  code: ViewProblemCode,
  message: string,
  { template = '', tool = '' }: Partial<Pick<ViewProblem, 'template' | 'tool'>> = {},
): ViewProblem {
  return { code, template, tool, message };
}

function quote(text: string): string {
  return JSON.stringify(text);
}

function itemsOf({ gathered }: Pick<Survey, 'gathered'>, template: string): readonly JsonObject[] {
  return gathered.find((each) => each.template === template)?.items ?? [];
}

async function globProblems(
  source: ViewSource,
  surveys: Surveys,
  scheduler: TaskScheduler,
): Promise<ViewProblem[]> {
  const { template } = source;
  const problems: ViewProblem[] = [];
  for (const list of ['tools', 'prompts', 'resources'] as const) {
    const globs = source[list];
    if (globs === undefined || typeof globs === 'string') continue;
    const names = itemsOf(surveys[list], template).map((item) => itemName(list, item));
    // Skills are not part of the list of resources.
    const judged = list === 'resources' ? globs.filter((glob) => !SKILL_GLOB.test(glob)) : globs;
    for (const glob of await unmetGlobs(judged, names, scheduler)) {
      const message = `The glob ${quote(glob)} matches none of the ${list} of ${template}.`;
      problems.push(problem('glob_unmet', message, { template }));
    }
  }
  return problems;
}

/** The globs that match none of the names. */
async function unmetGlobs(
  globs: readonly string[],
  names: readonly string[],
  scheduler: TaskScheduler,
): Promise<readonly string[]> {
  let unmet = globs.map((glob) => ({ glob, matches: compileGlob(glob) }));
  await scheduler.each(
    groupsToMatch(names, (name) => name),
    (group) => {
      unmet = unmet.filter(({ matches }) => !group.some(matches));
    },
  );
  return unmet.map(({ glob }) => glob);
}

function itemName(list: ListField, item: JsonObject): string {
  return String(item[KEY_FIELDS[list]]);
}

async function changeProblems(
  source: ViewSource,
  tools: Survey,
  scheduler: TaskScheduler,
): Promise<ViewProblem[]> {
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
        problem(code, `There is ${what} for ${quote(name)}, and the view has no such tool of ${template}.`, {
          template,
          tool: name,
        }),
      );
  const inSchemas: ViewProblem[] = [];
  await scheduler.each(Object.entries(defaults), ([name, values]) => {
    const item = byName.get(name)?.listed;
    if (item !== undefined)
      inSchemas.push(...argumentProblems(template, name, Object.keys(values), item.inputSchema));
  });
  return [
    ...unmet('rename_unmet', 'a new name', Object.keys(rename), own),
    ...unmet('describe_unmet', 'a description', Object.keys(describe), byName),
    ...unmet('annotate_unmet', 'an annotation', Object.keys(annotate), byName),
    ...unmet('default_unmet', 'a default', Object.keys(defaults), byName),
    ...inSchemas,
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
  const mentioned = new Set(JSON.stringify(others).match(JSON_STRINGS));
  return names.flatMap((name) => {
    const shown = quote(name);
    const found: ViewProblem[] = [];
    if (!Object.hasOwn(known, name))
      found.push(
        problem('default_unknown_argument', `The tool ${tool} has no argument ${shown}.`, { template, tool }),
      );
    if (mentioned.has(shown) || '$ref' in others)
      found.push(
        problem(
          'default_in_schema',
          `The schema of ${tool} may mention its argument ${shown} outside of its properties: clients see that.`,
          { template, tool },
        ),
      );
    return found;
  });
}

function nameProblems({ chosen, listed, displaced }: Survey): ViewProblem[] {
  const nameOf = new Map(chosen.map((item, index) => [item, listed[index]]));
  return displaced.slice(0, MAX_PROBLEMS).map((item) => {
    const name = nameOf.get(item) ?? '';
    const { template, own, wished } = item;
    const message = `${own} of ${template} is listed as ${name}, because ${quote(wished)} is the name of another one, or several want it.`;
    return problem('name_taken', message, { template, tool: own });
  });
}

// What users, API keys, roles and clients may use: lists of templates, views and tools, how they are combined, and the rules for the
// entries of `tools`, which are `<template>/<glob>` on the server's own names. Source: ADR 230.

import { compileGlobs, GLOB_LIMITS, type GlobMatcher } from './globs.ts';

/** An absent list contains all, an empty one nothing. */
export interface RightsLists {
  readonly templates?: readonly string[];
  /** Absent: all views if `templates` is absent too, else none. */
  readonly views?: readonly string[];
  /** Each `<template>/<glob>`, perhaps after `!`. Limits `templates` and `views` further. */
  readonly tools?: readonly string[];
}

/** Of each list: it is kept with every verified caller, and answers show it with every account. */
export const RIGHTS_LIMITS = {
  entries: { templates: 1_000, views: 1_000, tools: GLOB_LIMITS.count },
  /** UTF-16 units of all entries of a list. */
  units: 16_384,
} as const;

/** For each list that is too long, what is wrong with it. */
export function tooLongLists(
  lists: {
    readonly [L in keyof RightsLists]: RightsLists[L] | null | undefined;
  },
): readonly { readonly list: keyof RightsLists; readonly msg: string }[] {
  return (['templates', 'views', 'tools'] as const).flatMap((list) => {
    const entries = lists[list] ?? [];
    const most = RIGHTS_LIMITS.entries[list];
    if (entries.length > most) return { list, msg: `List should have at most ${most} entries` };
    const units = entries.reduce((sum, entry) => sum + entry.length, 0);
    if (units <= RIGHTS_LIMITS.units) return [];
    return { list, msg: `List should have at most ${RIGHTS_LIMITS.units} characters` };
  });
}

/** The same of a verified caller. */
export interface Rights {
  readonly templates?: ReadonlySet<string>;
  readonly views?: ReadonlySet<string>;
  readonly tools?: ToolRights;
}

/** What all of these lists contain. */
export function commonRights(...all: readonly RightsLists[]): Rights {
  const templates = common(all.map((lists) => lists.templates));
  // A list of templates without views contains no view, whatever views the others name: a key never has more than its owner.
  const views = common(all.map((lists) => lists.views ?? (lists.templates === undefined ? undefined : [])));
  const tools = all.flatMap((lists) => (lists.tools === undefined ? [] : [lists.tools]));
  return {
    ...(templates === undefined ? {} : { templates }),
    ...(views === undefined ? {} : { views }),
    ...(tools.length === 0 ? {} : { tools: new ToolRights(tools) }),
  };
}

/** True when some list is there. Such a caller manages no accounts: it could give itself more. */
export function isRestricted({ templates, views, tools }: Rights | RightsLists): boolean {
  return templates !== undefined || views !== undefined || tools !== undefined;
}

/** True for a caller with all templates: numbers and texts that cannot be split by template are for such a caller only. */
export function hasAllTemplates({ templates, tools }: Rights): boolean {
  return templates === undefined && tools === undefined;
}

/** What two callers must have in common to get the same answer. */
export function rightsKey({ templates, views, tools }: Rights): string {
  return JSON.stringify([templates && [...templates], views && [...views], tools?.lists]);
}

/** True when the caller may use the template; for others it does not exist. */
export function mayUse(rights: Rights, template: string): boolean {
  return (rights.templates === undefined || rights.templates.has(template)) && mayUseInView(rights, template);
}

/** False for a template that `tools` does not mention: nothing of it is there for the caller. A view needs no other right to its templates. */
export function mayUseInView({ tools }: Rights, template: string): boolean {
  return tools?.mention(template) ?? true;
}

/** True when `tools` contains this tool of a template that the caller may use, or of a view. `tool`: the server's own name. */
export function mayCall({ tools }: Rights, template: string, tool: string): boolean {
  return tools === undefined || tools.allow(template, tool);
}

/** True when the caller may use the view, whatever templates it may use. */
export function mayUseView({ templates, views }: Rights, view: string): boolean {
  return views === undefined ? templates === undefined : views.has(view);
}

/** The tools that all of some lists contain, compiled once. Two with the same lists are deeply equal. */
export class ToolRights {
  /** As they were given. */
  readonly lists: readonly (readonly string[])[];
  readonly #compiled: readonly CompiledList[];
  #text: string | undefined;

  constructor(lists: readonly (readonly string[])[]) {
    this.lists = lists;
    this.#compiled = lists.map(compileList);
  }

  /** Equal for equal lists. */
  get text(): string {
    this.#text ??= JSON.stringify(this.lists);
    return this.#text;
  }

  allow(template: string, tool: string): boolean {
    return this.#compiled.every((list) => ofTemplate(list, template)(tool));
  }

  /** False when no tool of the template can be in all lists, whatever its name. */
  mention(template: string): boolean {
    return this.#compiled.every((list) => ofTemplate(list, template) !== NONE);
  }
}

/** The form of an entry of `tools`. A glob has at most GLOB_LIMITS.units. */
export const TOOL_ENTRY = '^!?(?:\\*|[a-z][a-z0-9-]{0,127})/[^\\u0000]{1,255}$';

/** The templates that the entries name; not `*`. */
export function templatesIn(entries: readonly string[]): readonly string[] {
  return [...new Set(entries.map((entry) => partsOf(entry).template))].filter((name) => name !== ANY);
}

const ANY = '*';

interface CompiledList {
  readonly named: ReadonlyMap<string, GlobMatcher>;
  /** Of every template that the list does not name. */
  readonly others: GlobMatcher;
}

const NONE: GlobMatcher = () => false;

function ofTemplate({ named, others }: CompiledList, template: string): GlobMatcher {
  return named.get(template) ?? others;
}

function compileList(entries: readonly string[]): CompiledList {
  const parts = entries.map(partsOf);
  const startsFromAll = parts[0]?.isNegative === true;
  const of = (template: string): GlobMatcher => {
    const own = parts.filter((part) => part.template === ANY || part.template === template);
    const globs = own.map(({ isNegative, glob }) => `${isNegative ? '!' : ''}${glob}`);
    // What the first entry starts from holds for every template.
    return compileOwn([startsFromAll ? ANY : `!${ANY}`, ...globs]);
  };
  return {
    named: new Map(templatesIn(entries).map((template) => [template, of(template)])),
    others: of(ANY),
  };
}

/** NONE when nothing after the last `!*` adds a tool. */
function compileOwn(globs: readonly string[]): GlobMatcher {
  const last = globs.lastIndexOf('!*');
  const isEmpty = last >= 0 && globs.slice(last).every((glob) => glob.startsWith('!'));
  return isEmpty ? NONE : compileGlobs(globs);
}

function partsOf(entry: string) {
  const isNegative = entry.startsWith('!');
  const [template = '', ...rest] = (isNegative ? entry.slice(1) : entry).split('/');
  return { isNegative, template, glob: rest.join('/') };
}

function common(lists: readonly (readonly string[] | undefined)[]): ReadonlySet<string> | undefined {
  const given = lists.filter((list) => list !== undefined);
  const [first, ...others] = given;
  return first && new Set(first.filter((name) => others.every((list) => list.includes(name))));
}

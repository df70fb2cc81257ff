// What users, API keys, roles and clients may use: lists of templates, views and tools, how they are combined, and
// the rules for the entries of `tools`, which are `<template>/<glob>` on the server's own names. Source: ADR 230.

import { TEMPLATE_NAME } from '../template-name.ts';
import { GLOB_LIMITS, IndexedGlobs } from './globs.ts';

/** The lists of rights of an account, a role or a client. An absent list contains all, an empty one nothing. */
export interface RightsLists {
  readonly templates?: readonly string[];
  /** The views that may be used. Absent: all views if `templates` is absent too, else none. */
  readonly views?: readonly string[];
  /** The tools that may be called: entries `<template>/<glob>`, perhaps after `!`. They limit `templates` and `views` further. */
  readonly tools?: readonly string[];
}

/** The bounds of each list, which is kept with every verified caller and shown in answers with every account. */
export const RIGHTS_LIMITS = {
  entries: { templates: 1_000, views: 1_000, tools: GLOB_LIMITS.count },
  /** The most UTF-16 units of all entries of a list. */
  units: 16_384,
} as const;

/** The lists that are too long, each with a message that says so. */
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

/** The lists of a verified caller. */
export interface Rights {
  readonly templates?: ReadonlySet<string>;
  readonly views?: ReadonlySet<string>;
  readonly tools?: ToolRights;
}

/** The rights that all of these lists give. */
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

/** The memory that rights take, approximately, in bytes: each entry with its index in sets, look-ups and compiled globs. */
export function rightsBytes({ templates, views, tools }: Rights): number {
  let bytes = 0;
  for (const list of [templates, views, ...(tools?.lists ?? [])])
    for (const entry of list ?? []) bytes += entry.length + ENTRY_BYTES;
  return bytes;
}

const ENTRY_BYTES = 256;

/** A text that is equal for callers with equal answers, as far as these depend on their rights. */
export function rightsKey({ templates, views, tools }: Rights): string {
  return JSON.stringify([templates && [...templates], views && [...views], tools?.lists]);
}

/** True when the caller may use the template; for others it does not exist. */
export function mayUse(rights: Rights, template: string): boolean {
  return (rights.templates === undefined || rights.templates.has(template)) && mayUseInView(rights, template);
}

/**
 * False for a template that `tools` does not mention: nothing of it is there for the caller. A view needs no other
 * right to its templates.
 */
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
  /** The lists as they were given. */
  readonly lists: readonly (readonly string[])[];
  readonly #compiled: readonly CompiledTools[];
  #text: string | undefined;

  constructor(lists: readonly (readonly string[])[]) {
    this.lists = lists;
    this.#compiled = lists.map((entries) => new CompiledTools(entries));
  }

  /** A text of the lists, equal for equal lists. */
  get text(): string {
    this.#text ??= JSON.stringify(this.lists);
    return this.#text;
  }

  allow(template: string, tool: string): boolean {
    return this.#compiled.every((list) => list.allows(template, tool));
  }

  /** False when no tool of the template can be in all lists, whatever its name. */
  mention(template: string): boolean {
    return this.#compiled.every((list) => list.mentions(template));
  }
}

/** The form of an entry of `tools`. A glob has at most GLOB_LIMITS.units. */
export const TOOL_ENTRY = `^!?(?:\\*|${TEMPLATE_NAME})/[^\\u0000]{1,255}$`;

/** The templates that the entries name; not `*`. */
export function templatesIn(entries: readonly string[]): readonly string[] {
  return [...new Set(entries.map((entry) => partsOf(entry).template))].filter((name) => name !== ANY);
}

const ANY = '*';

/**
 * A list of entries. Each is compiled once: lists are kept with every verified caller, and may name as many
 * templates as they have entries.
 */
class CompiledTools {
  readonly #startsFromAll: boolean;
  readonly #isNegative: readonly boolean[];
  /** The entries for one template, by the name of the template. */
  readonly #named: ReadonlyMap<string, Entries>;
  /** The entries for every template. */
  readonly #any: Entries;

  constructor(entries: readonly string[]) {
    const parts = entries.map(partsOf);
    this.#isNegative = parts.map(({ isNegative }) => isNegative);
    this.#startsFromAll = this.#isNegative[0] === true;
    const indexed = parts.map((part, index) => ({ ...part, index }));
    const entriesFor = (template: string) =>
      new Entries(indexed.filter((part) => part.template === template));
    this.#named = new Map(templatesIn(entries).map((template) => [template, entriesFor(template)]));
    this.#any = entriesFor(ANY);
  }

  allows(template: string, tool: string): boolean {
    if (tool.length > GLOB_LIMITS.textUnits) return false;
    const own = this.#named.get(template)?.globs.lastOf(tool);
    const last = this.#any.globs.lastOf(tool, own);
    return last < 0 ? this.#startsFromAll : this.#isNegative[last] === false;
  }

  /** False when nothing after the last `!*` adds a tool. */
  mentions(template: string): boolean {
    const all = [this.#named.get(template), this.#any];
    const lastNone = Math.max(...all.map((entries) => entries?.lastNone ?? -1));
    const lastAdding = Math.max(...all.map((entries) => entries?.lastAdding ?? -1));
    return lastAdding > lastNone || (this.#startsFromAll && lastNone < 0);
  }
}

/** The entries of a list that have the same template. */
class Entries {
  readonly globs: IndexedGlobs;
  /** The indexes of the last `!*`, and of the last one without `!`; -1 without one. */
  readonly lastNone: number;
  readonly lastAdding: number;

  constructor(entries: readonly (ReturnType<typeof partsOf> & { readonly index: number })[]) {
    this.globs = new IndexedGlobs(entries);
    this.lastNone = entries.findLast(({ isNegative, glob }) => isNegative && glob === ANY)?.index ?? -1;
    this.lastAdding = entries.findLast(({ isNegative }) => !isNegative)?.index ?? -1;
  }
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

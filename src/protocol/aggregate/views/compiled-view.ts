// The choices of a view: which items it takes from the lists of its templates, the names that it wants for them,
// and its changes to them. They are compiled once from the definition; the items that were chosen of a list are
// cached as long as the list.

import { compileGlobs, type GlobMatcher, groupsToMatch } from '../../../domain/accounts/globs.ts';
import { definedFields, isJsonObject, type JsonObject, ownField } from '../../../domain/json/json.ts';
import { isRepeatableBy, type ListField } from '../../../domain/mcp/mcp.ts';
import { plainUri, readingsOf } from '../../../domain/mcp/resource-uris.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import type {
  ViewChoice,
  ViewDefinition,
  ViewHints,
  ViewLimit,
  ViewSource,
} from '../../../domain/views/view.ts';
import { KEY_FIELDS } from '../lists/acceptable-items.ts';
import type { Presentation } from '../selection.ts';
import { DefaultArguments } from './default-arguments.ts';

export interface ChosenItem {
  readonly template: string;
  /** Name, URI or URI template at the server. */
  readonly own: string;
  /** The name that it gets if nothing else has it. */
  readonly wished: string;
  readonly isRenamed: boolean;
  /** The item as its server lists it. */
  readonly listed: JsonObject;
  /** The item as it is shown, but under its own name. */
  readonly item: JsonObject;
  readonly defaults?: DefaultArguments | undefined;
  /** Whether calling it twice does no harm, where the view annotates it. */
  readonly isRepeatable?: boolean | undefined;
}

/** A definition, ready for use. */
export class CompiledView {
  readonly definition: ViewDefinition;
  readonly templates: readonly string[];
  readonly limits: ReadonlyMap<string, ViewLimit>;
  /** Matches the listed names of tools whose calls the user confirms. Undefined where there are none. */
  readonly isConfirmed: GlobMatcher | undefined;
  readonly presentation: Presentation;
  readonly #choices: ReadonlyMap<string, TemplateChoices>;

  constructor(definition: ViewDefinition) {
    this.definition = definition;
    this.templates = definition.from.map(({ template }) => template);
    const { id: name, title, version, instructions, mode, always, names = 'bare' } = definition;
    this.presentation = { names, mode, always, instructions, view: { name, title, version } };
    this.limits = new Map(Object.entries(definition.limits ?? {}));
    const { confirm = [] } = definition;
    this.isConfirmed = confirm.length === 0 ? undefined : compileGlobs(confirm);
    this.#choices = new Map(definition.from.map((source) => [source.template, new TemplateChoices(source)]));
  }

  /** The items of a list of one of the templates that the view has. The same array for the same items. */
  chosen(list: ListField, template: string, items: readonly JsonObject[]): readonly ChosenItem[] {
    return this.#choices.get(template)?.chosen(list, items) ?? [];
  }

  /** Frees the items that were chosen from lists. */
  forget(): void {
    for (const choices of this.#choices.values()) choices.forget();
  }

  /** Chooses from the items in several turns of the event loop, so that `chosen` knows the answer. */
  async choose(
    list: ListField,
    template: string,
    items: readonly JsonObject[],
    scheduler: TaskScheduler,
  ): Promise<void> {
    await this.#choices.get(template)?.choose(list, items, scheduler);
  }

  /** The name that a tool gets if nothing else has it, except for a prefix. */
  wishOf(template: string, own: string): string {
    const { rename = {} } = this.definition.from.find((source) => source.template === template) ?? {};
    return ownField(rename, own) ?? own;
  }

  /** True when a client of the view may read this resource of the template, listed or not. */
  mayRead(template: string, uri: string): boolean {
    return this.#choices.get(template)?.mayRead(uri) ?? false;
  }

  /** True when the names and globs alone say which tools of the template the view has. */
  isByName(template: string): boolean {
    return this.definition.from.find((source) => source.template === template)?.only === undefined;
  }

  /** Whether calling a tool of an unknown definition twice does no harm; undefined where the view does not annotate it. */
  isUnlistedRepeatable(template: string, own: string): boolean | undefined {
    return this.#choices.get(template)?.isUnlistedRepeatable(own);
  }

  /** True for a tool that the view has. `listed`: its definition; undefined where it is not known, and its hints do not count. */
  hasTool(template: string, own: string, listed: JsonObject | undefined): boolean {
    if (listed === undefined || this.isByName(template)) return this.takes('tools', template, own);
    return this.#choices.get(template)?.hasTool(listed) ?? false;
  }

  /** True for a tool or a prompt that the view has if its server lists it, whatever its hints are. */
  takes(list: 'tools' | 'prompts', template: string, own: string): boolean {
    return this.#choices.get(template)?.takes(list, own) ?? false;
  }
}

class TemplateChoices {
  readonly #source: ViewSource;
  readonly #takes: Readonly<Record<ListField, GlobMatcher>>;
  /** The same for URIs in plain form. */
  readonly #takesPlain: GlobMatcher;
  readonly #defaults: ReadonlyMap<string, DefaultArguments>;
  #chosen = new WeakMap<readonly JsonObject[], Map<ListField, readonly ChosenItem[]>>();

  constructor(source: ViewSource) {
    this.#source = source;
    const resources = matcherOf(source.resources);
    this.#takes = {
      tools: source.tools === undefined ? ALL : compileGlobs(source.tools),
      prompts: matcherOf(source.prompts),
      resources,
      // A template stands for many URIs: each is checked when it is read.
      resourceTemplates: source.resources === 'none' ? NONE : ALL,
    };
    this.#takesPlain = matcherOf(source.resources, plainUri);
    this.#defaults = new Map(
      Object.entries(source.defaults ?? {}).map(([tool, values]) => [tool, new DefaultArguments(values)]),
    );
  }

  forget(): void {
    this.#chosen = new WeakMap();
  }

  takes(list: 'tools' | 'prompts', own: string): boolean {
    return this.#takes[list](own);
  }

  hasTool(listed: JsonObject): boolean {
    return [this.#choose('tools', listed)].flat().length > 0;
  }

  /** True when the view has the URI, both as it is written and as its server may read it. */
  mayRead(uri: string): boolean {
    if (!Array.isArray(this.#source.resources)) return this.#takes.resources(uri);
    return this.#takes.resources(uri) && readingsOf(uri).every(this.#takesPlain);
  }

  chosen(list: ListField, items: readonly JsonObject[]): readonly ChosenItem[] {
    return (
      this.#known(items).get(list) ??
      this.#keep(
        list,
        items,
        items.flatMap((item) => this.#choose(list, item)),
      )
    );
  }

  async choose(list: ListField, items: readonly JsonObject[], scheduler: TaskScheduler): Promise<void> {
    if (this.#takes[list] === ALL || this.#known(items).has(list)) return;
    const chosen: ChosenItem[] = [];
    const groups = groupsToMatch(items, (item) => String(item[KEY_FIELDS[list]]));
    await scheduler.each(groups, (group) => {
      for (const item of group) chosen.push(...[this.#choose(list, item)].flat());
    });
    if (!this.#known(items).has(list)) this.#keep(list, items, chosen);
  }

  #known(items: readonly JsonObject[]): ReadonlyMap<ListField, readonly ChosenItem[]> {
    return this.#chosen.get(items) ?? NO_ITEMS;
  }

  #keep(list: ListField, items: readonly JsonObject[], chosen: readonly ChosenItem[]): readonly ChosenItem[] {
    const byList = this.#chosen.get(items) ?? new Map<ListField, readonly ChosenItem[]>();
    this.#chosen.set(items, byList.set(list, chosen));
    return chosen;
  }

  #choose(list: ListField, item: JsonObject): ChosenItem | readonly ChosenItem[] {
    const own = String(item[KEY_FIELDS[list]]);
    if (!this.#takes[list](own)) return [];
    const { template, only, rename = {} } = this.#source;
    const plain = { template, own, wished: own, isRenamed: false, listed: item, item };
    if (list !== 'tools') return plain;
    const isRenamed = Object.hasOwn(rename, own);
    const wished = isRenamed ? (rename[own] ?? own) : own;
    const defaults = this.#defaults.get(wished);
    const shown = this.#shown(item, wished, defaults);
    if (only !== undefined && !hasHints(shown, only)) return [];
    const isRepeatable = this.#isRepeatable(wished, item.annotations);
    return { template, own, wished, isRenamed, listed: item, item: shown, defaults, isRepeatable };
  }

  #isRepeatable(wished: string, annotations?: unknown): boolean | undefined {
    const hints = ownField(this.#source.annotate ?? {}, wished);
    return hints && isRepeatableBy(hints, isJsonObject(annotations) ? annotations : {});
  }

  isUnlistedRepeatable(own: string): boolean | undefined {
    return this.#isRepeatable(ownField(this.#source.rename ?? {}, own) ?? own);
  }

  #shown(item: JsonObject, wished: string, defaults: DefaultArguments | undefined): JsonObject {
    const { describe = {}, annotate = {} } = this.#source;
    const description = ownField(describe, wished);
    const hints = ownField(annotate, wished);
    if (description === undefined && hints === undefined && defaults === undefined) return item;
    const annotations = isJsonObject(item.annotations) ? item.annotations : {};
    return {
      ...item,
      ...definedFields({ description }),
      ...(hints === undefined ? {} : { annotations: { ...annotations, ...hints } }),
      ...(defaults === undefined || !isJsonObject(item.inputSchema)
        ? {}
        : { inputSchema: defaults.without(item.inputSchema) }),
    };
  }
}

const NO_ITEMS: ReadonlyMap<ListField, readonly ChosenItem[]> = new Map();
const ALL: GlobMatcher = () => true;
const NONE: GlobMatcher = () => false;

function matcherOf(choice: ViewChoice = 'all', as = (glob: string) => glob): GlobMatcher {
  if (choice === 'all') return ALL;
  if (choice === 'none') return NONE;
  return compileGlobs(choice.map((glob) => (glob.startsWith('!') ? `!${as(glob.slice(1))}` : as(glob))));
}

/** Hints that a tool does not give have the defaults of MCP. Source: MCP 2025-11-25 schema#ToolAnnotations. */
function hasHints({ annotations }: JsonObject, wanted: ViewHints): boolean {
  const given = isJsonObject(annotations) ? annotations : {};
  const readOnly = given.readOnlyHint === true;
  const hints: Required<ViewHints> = {
    readOnly,
    destructive: !readOnly && given.destructiveHint !== false,
    idempotent: readOnly || given.idempotentHint === true,
    openWorld: given.openWorldHint !== false,
  };
  return Object.entries(wanted).every(([hint, value]) => hints[hint as keyof ViewHints] === value);
}

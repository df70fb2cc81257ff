// The names, items and URIs of one view, and the target of each of them at its template.

import { randomUUID } from 'node:crypto';
import { groupsToMatch } from '../../../domain/accounts/globs.ts';
import { mayCall, mayUseInView } from '../../../domain/accounts/rights.ts';
import { type JsonObject, JsonText, ownField } from '../../../domain/json/json.ts';
import type { Client, Owner } from '../../../domain/mcp/client.ts';
import { isModernVersion, type ListField } from '../../../domain/mcp/mcp.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import { PerList } from '../../../domain/memory/per-list.ts';
import { nearName } from '../../../domain/nearest.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import type { NameTargets } from '../../../domain/views/view.ts';
import { splitName } from '../aggregate-names.ts';
import { type AggregateLists, type GatheredList, isSameInput } from '../lists/aggregate-lists.ts';
import { type Directory, type Listing, listingOf, type OwnTarget } from '../lists/directory.ts';
import { shownItem } from '../lists/shown-item.ts';
import { ResourceTargets } from '../uris/resource-targets.ts';
import { CompiledLists } from './compiled-lists.ts';
import type { ChosenItem, CompiledView } from './compiled-view.ts';
import { type GivenNames, givenNames, isLikePrefixed, ownPrefixedName } from './view-names.ts';
import type { Survey, Waiting } from './view-problems.ts';

/** The most callers whose last list is remembered, and the most different lists that are remembered. */
const MAX_CALLERS = 1_000;
const MAX_COMPILED = 32;

export interface ViewDirectoryOptions {
  readonly lists: AggregateLists;
  readonly scheduler: TaskScheduler;
  /** The view that is in force now. */
  readonly view: () => CompiledView;
  /** The templates of the view that exist, or those of a caller. */
  readonly templates: (owner: Owner) => readonly string[];
  /**
   * True at `/mcp`: a prefixed name stands for its tool or prompt whether it is listed or not, so
   * no other one gets such a name, and each caller has templates of its own.
   */
  readonly isOfAllTemplates?: boolean;
  readonly nameTargets: () => NameTargets;
  /** Gets the targets of bare names that had none. */
  readonly keepTargets: (list: 'tools' | 'prompts', targets: NameTargets['tools']) => void;
  /** A number that differs after each change of the view, of a list of its templates, or of the approved items. */
  readonly version: () => number;
  /** Shared by the views of a gateway. Default: one of its own. */
  readonly compiledLists?: CompiledLists | undefined;
  /** The tools that wait for approval, which are noted. Default: none does. */
  readonly waiting?:
    | ((chosen: readonly ChosenItem[]) => Promise<ReadonlyMap<ChosenItem, Waiting>>)
    | undefined;
}

/** A list of the view that was compiled from lists of its templates. */
interface Compiled {
  readonly inputs: readonly Pick<GatheredList, 'template' | 'items' | 'bytes'>[];
  readonly list: ListField;
  readonly isLegacy: boolean;
  readonly view: CompiledView;
  readonly version: number;
  /** The version of the URIs. */
  readonly uris: number;
  readonly chosen: readonly ChosenItem[];
  readonly waiting: Survey['waiting'];
  readonly given: Omit<GivenNames, 'newTargets'>;
  readonly items: readonly JsonObject[];
  /** The items by listed name. */
  readonly byName: ReadonlyMap<string, ChosenItem>;
  /** The items by own name. */
  readonly byOwn: ReadonlyMap<string, readonly ChosenItem[]>;
  /** The tools whose calls the user confirms. Undefined where there are none. */
  readonly asking: ReadonlySet<ChosenItem> | undefined;
  /** The items by prefixed name, once one was looked up. */
  byPrefixed?: ReadonlyMap<string, ChosenItem>;
  result: JsonText | undefined;
}

/** The inputs that a compiled list was made from. */
type Compilable = Pick<Compiled, 'inputs' | 'list' | 'isLegacy' | 'view' | 'version' | 'uris'>;

/**
 * The directory of a view, until `close`. It compiles the lists of its templates when they, or the view, change;
 * a call of a known name is one look-up.
 */
export class ViewDirectory implements Directory {
  /** The key of its lists among those of all views. */
  readonly #id = randomUUID();
  readonly #ofAllViews: CompiledLists;
  readonly #options: ViewDirectoryOptions;
  readonly #compiled: Compiled[] = [];
  /** The items that the lists show to callers with rights to some tools. */
  readonly #allowed = new PerList<readonly JsonObject[]>();
  readonly #ofCaller = {
    tools: new LruMap<Compiled>(MAX_CALLERS),
    prompts: new LruMap<Compiled>(MAX_CALLERS),
  };
  #uris: { readonly compiled: CompiledView; readonly targets: ResourceTargets } | undefined;

  /** Lists that are being compiled, in several turns: callers that ask meanwhile share them. */
  readonly #compiling = new Set<Compilable & { readonly compiled: Promise<Compiled> }>();

  constructor(options: ViewDirectoryOptions) {
    this.#options = options;
    this.#ofAllViews = options.compiledLists ?? new CompiledLists();
  }

  close(): void {
    this.#ofAllViews.delete(this.#id);
  }

  readonly #forget = (): void => {
    this.#compiled.length = 0;
    this.#ofCaller.tools.clear();
    this.#ofCaller.prompts.clear();
    this.#options.view().forget();
  };

  /** Counts the lists, and forgets those for which there is no room. */
  #used(): void {
    const { tools, prompts } = this.#ofCaller;
    const all = new Set([...this.#compiled, ...tools.values(), ...prompts.values()]);
    for (const beyond of this.#ofAllViews.use(this.#id, all, this.#forget)) {
      const index = this.#compiled.indexOf(beyond);
      if (index >= 0) this.#compiled.splice(index, 1);
      for (const last of [tools, prompts])
        for (const [owner, compiled] of [...last.entries()]) if (compiled === beyond) last.delete(owner);
    }
  }

  /** Owners of resources, learnt again when the view changes. */
  get uris(): ResourceTargets {
    const { lists, templates, view, scheduler } = this.#options;
    const compiled = view();
    if (this.#uris?.compiled !== compiled) {
      const mayRead = (template: string, uri: string) => compiled.mayRead(template, uri);
      const takesTool = (template: string, name: string) => compiled.takes('tools', template, name);
      this.#uris = {
        compiled,
        targets: new ResourceTargets({
          lists,
          templates,
          mayRead,
          mayUse: mayUseInView,
          takesTool,
          scheduler,
        }),
      };
    }
    return this.#uris.targets;
  }

  async listing(list: ListField, client: Client): Promise<Listing> {
    const gathered = await this.#gather(list, client);
    for (let learned: ResourceTargets | undefined; learned !== this.uris; ) {
      learned = this.uris; // another one when the view changes meanwhile
      await learned.learn(list, gathered, client);
    }
    const compiled = await this.#compile(list, gathered, client);
    const { owner } = client;
    if (list === 'tools' || list === 'prompts') this.#ofCaller[list].set(owner.id, compiled);
    const mayHaveOf = ({ template }: { readonly template: string }) => mayUseInView(owner, template);
    const isLimited = owner.tools !== undefined && !this.#options.isOfAllTemplates;
    if (!isLimited || (list !== 'tools' && gathered.every(mayHaveOf))) {
      return listingOf(compiled.items, gathered, () => {
        compiled.result ??= JsonText.ofValue({ [list]: compiled.items });
        return compiled.result;
      });
    }
    const own = gathered.filter(mayHaveOf);
    if (list === 'resources' || list === 'resourceTemplates')
      return listingOf(await this.uris.shownItems(list, compiled.chosen.filter(mayHaveOf), owner), own);
    const allowed = this.#allowed.of(compiled, owner.tools.text, () => this.#allowedIn(compiled, owner));
    return listingOf(await allowed, own);
  }

  async #allowedIn({ chosen, items, list }: Compiled, owner: Owner): Promise<readonly JsonObject[]> {
    const allowed: JsonObject[] = [];
    const groups = groupsToMatch(chosen.entries(), ([, { own }]) => own);
    await this.#options.scheduler.each(groups, (group) => {
      for (const [index, each] of group) {
        const item = items[index];
        if (item !== undefined && isAllowed(owner, list, each)) allowed.push(item);
      }
    });
    return allowed;
  }

  /** The present items of the view, for people: each with its listed name. */
  async survey(list: ListField, client: Client): Promise<Survey> {
    const gathered = await this.#gather(list, client);
    const { chosen, given, waiting } = await this.#compile(list, gathered, client);
    return { gathered, chosen, listed: given.listed, displaced: given.displaced, waiting };
  }

  /**
   * Reads the lists of the templates. The names of a view, and its items that wait for approval, do not depend on the rights of a
   * caller.
   */
  #gather(list: ListField, client: Client): Promise<GatheredList[]> {
    const { lists, templates, isOfAllTemplates } = this.#options;
    const { tools: _, ...owner } = client.owner;
    return lists.gather(list, templates(client.owner), isOfAllTemplates ? client : { ...client, owner });
  }

  /** The names of these tools if all of them were listed. Gives none away. */
  namesOf(chosen: readonly ChosenItem[]): readonly string[] {
    const { names = 'bare', name_length: length = 64 } = this.#options.view().definition;
    return givenNames(chosen, { names, length, targets: this.#options.nameTargets().tools }).listed;
  }

  async targetOfName(
    name: string,
    list: 'tools' | 'prompts',
    client: Client,
  ): Promise<OwnTarget | undefined> {
    const { owner } = client;
    const known = this.knownTarget(name, owner, list);
    if (known !== undefined) return known;
    const { missing } = await this.listing(list, client);
    const compiled = this.#ofCaller[list].get(owner.id);
    // A view that changed meanwhile is listed again; a list that did is not, since it may change each time.
    if (compiled !== undefined && compiled.view !== this.#options.view())
      return this.targetOfName(name, list, client);
    const found = compiled && this.#targetIn(compiled, name, owner, list);
    return found ?? this.#ofMissing(name, list, missing);
  }

  knownTarget(name: string, owner: Owner, list: 'tools' | 'prompts' = 'tools'): OwnTarget | undefined {
    const compiled = this.#ofCaller[list].get(owner.id);
    if (compiled === undefined || compiled.version !== this.#options.version()) return undefined;
    return this.#targetIn(compiled, name, owner, list);
  }

  #targetIn(compiled: Compiled, name: string, owner: Owner, list: 'tools' | 'prompts') {
    const listed = compiled.byName.get(name);
    if (listed !== undefined && this.#mayHave(owner, list, listed)) return targetOf(listed, compiled, name);
    const [only, ...others] = this.#unlisted(name, list, compiled).filter((each) =>
      this.#mayHave(owner, list, each),
    );
    return only === undefined || others.length > 0
      ? undefined
      : targetOf(only, compiled, nameIn(compiled, only));
  }

  /** True when the view has this tool of a template now: by its names, and by its hints in the last list of the template. */
  hasTool(template: string, own: string): boolean {
    const view = this.#options.view();
    if (view.isByName(template)) return view.takes('tools', template, own);
    const { inputs = [] } = this.#compiled.find(({ list }) => list === 'tools') ?? {};
    const { items = [] } = inputs.find((input) => input.template === template) ?? {};
    return view.hasTool(
      template,
      own,
      items.find(({ name }) => name === own),
    );
  }

  /** The items that a name stands for which is not listed: a prefixed one, or the own name of a tool. */
  #unlisted(name: string, list: 'tools' | 'prompts', compiled: Compiled): readonly ChosenItem[] {
    if (this.#options.isOfAllTemplates) {
      compiled.byPrefixed ??= new Map(
        [...compiled.byName.values()].map((each) => [ownPrefixedName(each), each]),
      );
      const prefixed = compiled.byPrefixed.get(name);
      if (prefixed !== undefined) return [prefixed];
      if (isLikePrefixed(name, compiled.view)) return [];
    }
    return list === 'tools' ? (compiled.byOwn.get(name) ?? []) : [];
  }

  /** True when the caller may use the template: its last list may be from a time when it had other rights. */
  #mayHave(owner: Owner, list: 'tools' | 'prompts', item: ChosenItem): boolean {
    const { isOfAllTemplates, templates } = this.#options;
    if (isOfAllTemplates && !templates(owner).includes(item.template)) return false;
    return isAllowed(owner, list, item);
  }

  async nearestNames(written: string, list: 'tools' | 'prompts', client: Client): Promise<readonly string[]> {
    const { items } = await this.listing(list, client);
    const names = items.map(({ name }) => String(name));
    const near = nearName(written, names);
    return near === undefined ? [] : [near];
  }

  /**
   * The target of a name whose template has no list now: the template itself answers why. Undefined where its hints decide, since
   * it may have its list again when the call arrives.
   */
  #ofMissing(name: string, list: 'tools' | 'prompts', missing: Listing['missing']): OwnTarget | undefined {
    const targets = this.#options.nameTargets()[list];
    const target = ownField(targets, name);
    const at = target?.indexOf('/') ?? -1;
    const own =
      target === undefined || at < 0
        ? splitName(name)
        : { template: target.slice(0, at), name: target.slice(at + 1) };
    if (own === undefined || !missing.some(({ template }) => template === own.template)) return undefined;
    const view = this.#options.view();
    const source = view.definition.from.find(({ template }) => template === own.template);
    // Also undefined where the changes of this source need its list.
    if (source === undefined || !view.isByName(own.template) || source.defaults !== undefined)
      return undefined;
    // Also undefined where a call may need its user's confirmation: the listed name of the tool is not known.
    if (list === 'tools' && view.isConfirmed !== undefined) return undefined;
    if (!view.takes(list, own.template, own.name)) return undefined;
    return { ...own, listed: name, isRepeatable: view.isUnlistedRepeatable(own.template, own.name) };
  }

  async #compile(
    list: ListField,
    gathered: readonly GatheredList[],
    { owner, profile }: Client,
  ): Promise<Compiled> {
    const inputs = gathered.filter(({ missing }) => missing === undefined);
    const isLegacy = !isModernVersion(profile.protocolVersion);
    const view = await this.#choose(list, inputs);
    const version = this.#options.version();
    const uris = list === 'prompts' ? 0 : this.uris.version;
    const isSame = (known: Compilable) =>
      known.list === list &&
      known.isLegacy === isLegacy &&
      known.view === view &&
      isSameInput(known.inputs, inputs);
    const found = this.#compiled.find(isSame);
    if (found?.version === version && found.uris === uris) {
      this.#used();
      return found;
    }
    for (const each of this.#compiling)
      if (isSame(each) && each.version === version && each.uris === uris) return each.compiled;
    const all = inputs.flatMap(({ template, items }) => view.chosen(list, template, items));
    const from = { inputs, list, isLegacy, view, version, uris };
    const compiling = { ...from, compiled: this.#named(list, all, owner, from) };
    this.#compiling.add(compiling);
    const compiled = await compiling.compiled.finally(() => this.#compiling.delete(compiling));
    const index = found === undefined ? -1 : this.#compiled.indexOf(found);
    if (index >= 0) this.#compiled.splice(index, 1);
    this.#compiled.unshift(compiled);
    this.#compiled.length = Math.min(this.#compiled.length, MAX_COMPILED);
    this.#used();
    return compiled;
  }

  /** Resolves with the view in force, which has chosen from these lists. */
  async #choose(list: ListField, inputs: Compiled['inputs']): Promise<CompiledView> {
    const view = this.#options.view();
    for (const { template, items } of inputs)
      await view.choose(list, template, items, this.#options.scheduler);
    return view === this.#options.view() ? view : this.#choose(list, inputs);
  }

  /** A tool that did not get its name counts by the name that it wishes, too: the globs may have been written for that. */
  async #askingIn(
    named: readonly (readonly [name: string, item: ChosenItem])[],
    { isConfirmed, definition }: CompiledView,
  ): Promise<Compiled['asking']> {
    if (isConfirmed === undefined) return undefined;
    const isBare = definition.names !== 'prefixed';
    const asking = new Set<ChosenItem>();
    await this.#options.scheduler.each(
      groupsToMatch(named, ([name]) => name),
      (group) => {
        for (const [name, item] of group)
          if (isConfirmed(name) || (isBare && isConfirmed(item.wished))) asking.add(item);
      },
    );
    return asking;
  }

  async #named(
    list: ListField,
    all: readonly ChosenItem[],
    owner: Owner,
    from: Compilable,
  ): Promise<Compiled> {
    if (list !== 'tools' && list !== 'prompts') {
      const items = await this.uris.shownItems(list, all, owner);
      const names = { given: NO_GIVEN, byName: new Map(), byOwn: new Map(), asking: undefined };
      return { ...from, ...names, waiting: new Map(), chosen: all, items, result: undefined };
    }
    const waiting = (list === 'tools' ? await this.#options.waiting?.(all) : undefined) ?? new Map();
    // Another instance may still have the approved definition of a changed tool: its calls find that one.
    const callable = all.filter((item) => waiting.get(item)?.hasApproved !== false);
    const { names = 'bare', name_length: length = 64 } = from.view.definition;
    const isReserved = this.#options.isOfAllTemplates
      ? (name: string) => isLikePrefixed(name, from.view)
      : undefined;
    const given = givenNames(callable, {
      names,
      length,
      targets: this.#options.nameTargets()[list],
      isReserved,
    });
    if (Object.keys(given.newTargets).length > 0) this.#options.keepTargets(list, given.newTargets);
    const named = callable.map((each, index) => [given.listed[index] ?? '', each] as const);
    const shown = waiting.size === 0 ? named : named.filter(([, each]) => !waiting.has(each));
    const items = shown.map(([name, each]) => {
      const item = list === 'tools' ? this.uris.shownTool(each.template, each.item, owner) : each.item;
      return shownItem(list, item, { name, own: each.own, isLegacy: from.isLegacy });
    });
    return {
      ...from,
      waiting,
      chosen: shown.map(([, each]) => each),
      given: {
        listed: shown.map(([name]) => name),
        displaced: given.displaced.filter((each) => !waiting.has(each)),
      },
      items,
      byName: new Map(named),
      byOwn: Map.groupBy(callable, ({ own }) => own),
      asking: list === 'tools' ? await this.#askingIn(named, from.view) : undefined,
      result: undefined,
    };
  }
}

const NO_GIVEN = { listed: [], displaced: [] };

function isAllowed(owner: Owner, list: ListField, { template, own }: ChosenItem): boolean {
  return list === 'tools' ? mayCall(owner, template, own) : mayUseInView(owner, template);
}

function targetOf(item: ChosenItem, { asking }: Compiled, listed: string): OwnTarget {
  const { template, own, defaults, isRepeatable } = item;
  return {
    template,
    name: own,
    isRepeatable,
    ...(defaults === undefined ? {} : { defaults }),
    ...(asking?.has(item) && { asks: true }),
    listed,
  };
}

/** Rare: a client called a tool by its own name, or by its prefixed one. */
function nameIn({ byName }: Compiled, { template, own }: ChosenItem): string {
  const isThat = (item: ChosenItem) => item.template === template && item.own === own;
  return [...byName].find(([, item]) => isThat(item))?.[0] ?? own;
}

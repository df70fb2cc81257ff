// Makes the lists of an aggregate of those of its templates, and finds the template that owns a name. It learns from the
// lists, and reads them once more for an unknown name.

import { mayCall } from '../../../domain/accounts/rights.ts';
import { type JsonFields, type JsonObject, JsonText } from '../../../domain/json/json.ts';
import type { Client, Owner } from '../../../domain/mcp/client.ts';
import { isModernVersion, type ListField } from '../../../domain/mcp/mcp.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import { nearName } from '../../../domain/nearest.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import { aggregateName, mayBeFrom, mayBeMapped, type OwnName, splitName } from '../aggregate-names.ts';
import { ResourceTargets } from '../uris/resource-targets.ts';
import { KEY_FIELDS } from './acceptable-items.ts';
import { type AggregateLists, type GatheredList, isSameInput } from './aggregate-lists.ts';
import { shownItem } from './shown-item.ts';

const MAX_REMEMBERED = 50_000;
/** The longest own name by which a tool is found. */
const MAX_OWN_CHARACTERS = 256;
/** The most names that an error suggests. */
export const MAX_HINTS = 3;
/** Lists that are kept with their names: of both eras, and of callers with different rights. */
const MAX_NAMED = 8;

/** The tool or prompt that a name stands for at its template. */
export interface OwnTarget extends OwnName {
  /** The name under which it is listed; absent where that does not matter. */
  readonly listed?: string;
  /** Whether it may be called twice, where annotations of the view say it. */
  readonly isRepeatable?: boolean | undefined;
  /** Arguments that the gateway sets. */
  readonly defaults?: { addedTo(given: JsonFields[string]): JsonFields[string] | string };
  /** True when the user confirms each call. */
  readonly asks?: boolean;
}

/** A list of an aggregate, made of those of its templates. */
interface NamedList {
  readonly list: 'tools' | 'prompts';
  readonly inputs: readonly GatheredList[];
  readonly isLegacy: boolean;
  /** Version of the URIs that its tools name. */
  readonly uris: number;
  readonly items: Promise<readonly JsonObject[]>;
  /** The serialized list, once it was needed. */
  result: JsonText | undefined;
}

/** A list of an aggregate, and the parts that are incomplete in it. */
export interface Listing {
  readonly items: readonly JsonObject[];
  /** Templates whose items are missing because they did not answer. `reason`: a sentence for clients. */
  readonly missing: readonly { readonly template: string; readonly reason: string }[];
  /** Templates whose items come from their last list. */
  readonly stale: readonly { readonly template: string; readonly age_seconds: number }[];
  /** Templates whose list ends before its last page. `reason`: a sentence for clients. */
  readonly truncated: readonly { readonly template: string; readonly reason: string }[];
  /** The result with these items and nothing else, if it is kept. */
  readonly result?: (() => JsonText) | undefined;
}

/** The names and URIs of an aggregate. */
export interface Directory {
  /** One list, and the parts that are incomplete in it. */
  listing(list: ListField, client: Client): Promise<Listing>;
  /** The target of a tool or prompt at its template; undefined when there is none of this name. */
  targetOfName(name: string, list: 'tools' | 'prompts', client: Client): Promise<OwnTarget | undefined>;
  /** The target of `targetOfName`, without reading a list; a list that was not read may have the name. */
  knownTarget(name: string, owner: Owner, list?: 'tools' | 'prompts'): OwnTarget | undefined;
  /** The names that were probably meant instead of an unknown one. Reads the list. */
  nearestNames(written: string, list: 'tools' | 'prompts', client: Client): Promise<readonly string[]>;
  /** The URIs of resources, and where they lead. */
  readonly uris: ResourceTargets;
}

/** Remembers the lists of all callers; each answer respects the permissions of its caller. */
export class AggregateDirectory implements Directory {
  readonly #lists: AggregateLists;
  readonly #templates: (owner: Owner) => readonly string[];
  readonly #mapped = new LruMap<OwnName>(MAX_REMEMBERED);
  /** The templates that list a tool, by the own name of the tool. */
  readonly #ownNames = new LruMap<ReadonlySet<string>>(MAX_REMEMBERED);
  /** The lists that were named lately, the newest first. */
  #named: readonly NamedList[] = [];
  readonly #scheduler: TaskScheduler;
  readonly uris: ResourceTargets;

  constructor(
    lists: AggregateLists,
    templates: (owner: Owner) => readonly string[],
    scheduler: TaskScheduler,
  ) {
    this.#lists = lists;
    this.#templates = templates;
    this.#scheduler = scheduler;
    this.uris = new ResourceTargets({ lists, templates, scheduler });
  }

  /** One list of the templates of the owner: with aggregate names and without duplicates. */
  async listing(list: ListField, client: Client): Promise<Listing> {
    const gathered = await this.#lists.gather(list, this.#templates(client.owner), client);
    const complete = gathered.filter(({ missing }) => missing === undefined);
    await this.uris.learn(list, gathered, client);
    if (list === 'resources' || list === 'resourceTemplates') {
      const items = complete.flatMap(({ template, items }) => items.map((item) => ({ template, item })));
      return listingOf(await this.uris.shownItems(list, items, client.owner), gathered);
    }
    const named = this.#namedOf(list, complete, client);
    const items = await named.items;
    return listingOf(items, gathered, () => {
      named.result ??= JsonText.ofValue({ [list]: items });
      return named.result;
    });
  }

  /** Callers with the same lists share one, also while it is made. */
  #namedOf(list: 'tools' | 'prompts', inputs: readonly GatheredList[], client: Client): NamedList {
    const isLegacy = !isModernVersion(client.profile.protocolVersion);
    const uris = list === 'prompts' ? 0 : this.uris.version;
    const found = this.#named.find(
      (known) =>
        known.list === list &&
        known.isLegacy === isLegacy &&
        known.uris === uris &&
        isSameInput(known.inputs, inputs),
    );
    if (found !== undefined) return found;
    const items = this.#itemsOf(list, inputs, client.owner, isLegacy);
    const named: NamedList = { list, inputs, isLegacy, uris, items, result: undefined };
    // The own names that were learnt from older lists of these templates are not known any more.
    const others = this.#named.filter((known) => known.list !== list || !isOtherList(known.inputs, inputs));
    this.#named = [named, ...others].slice(0, MAX_NAMED);
    return named;
  }

  async #itemsOf(
    list: 'tools' | 'prompts',
    inputs: readonly GatheredList[],
    owner: Owner,
    isLegacy: boolean,
  ): Promise<readonly JsonObject[]> {
    const keys = new Set<string>();
    const listed: JsonObject[] = [];
    const read = new Set(inputs.map(({ template }) => template));
    // A list without the tools that its caller may not call says nothing about those.
    const isRead = (each: string, name: string) => read.has(each) && mayCall(owner, each, name);
    const listedAt = new Map<string, Set<string>>();
    await this.#scheduler.each(itemsIn(inputs), ({ template, item: listedItem }) => {
      const name = String(listedItem[KEY_FIELDS[list]]);
      if (list === 'tools') this.#learnOwnName(name, template, listedAt, isRead);
      const key = aggregateName({ template, name });
      if (mayBeMapped(key)) this.#mapped.set(key, { template, name });
      if (keys.has(key)) return;
      keys.add(key);
      const item = list === 'tools' ? this.uris.shownTool(template, listedItem, owner) : listedItem;
      listed.push(shownItem(list, item, { name: key, own: name, isLegacy }));
    });
    return listed;
  }

  /**
   * Template and own name of a tool or prompt. A tool is also found by its own name, which pages of MCP Apps use, if no other
   * template of the owner has one of that name. Undefined when it belongs to none.
   */
  async targetOfName(
    aggregated: string,
    list: 'tools' | 'prompts',
    client: Client,
  ): Promise<OwnName | undefined> {
    return this.knownTarget(aggregated, client.owner, list) ?? this.#lookUp(aggregated, list, client);
  }

  knownTarget(aggregated: string, owner: Owner, list: 'tools' | 'prompts' = 'tools'): OwnName | undefined {
    if (list === 'tools' && isOwnName(aggregated)) {
      const [template, ...others] = this.#templatesListing(aggregated, owner);
      return template === undefined || others.length > 0 ? undefined : { template, name: aggregated };
    }
    const own = mayBeMapped(aggregated) ? this.#mapped.get(aggregated) : splitName(aggregated);
    if (own === undefined || !this.#templates(owner).includes(own.template)) return undefined;
    // The name of a tool that the caller may not call says nothing; the error of its template contains the own one.
    const isHidden = list === 'tools' && mayBeMapped(aggregated) && !mayCall(owner, own.template, own.name);
    return isHidden ? undefined : own;
  }

  /** The templates of the owner that list a tool of this own name which it may call. */
  #templatesListing(name: string, owner: Owner): readonly string[] {
    const listedAt = this.#ownNames.get(name);
    if (listedAt === undefined) return [];
    return this.#templates(owner).filter(
      (template) => listedAt.has(template) && mayCall(owner, template, name),
    );
  }

  /**
   * The names that were probably meant instead of an unknown one: as listed, or the own name of a tool. For an own
   * name that several templates have: that of each, up to MAX_HINTS. Reads the list.
   */
  async nearestNames(written: string, list: 'tools' | 'prompts', client: Client): Promise<readonly string[]> {
    const { items } = await this.listing(list, client);
    const shown = items.map(({ name }) => String(name));
    const own = list === 'prompts' || splitName(written) !== undefined ? [] : shown.flatMap(ownNameIn);
    const near = nearName(written, [...own, ...shown]);
    if (near === undefined) return [];
    const templates = own.includes(near) ? this.#templatesListing(near, client.owner) : [];
    if (templates.length < 2) return [near];
    return templates.slice(0, MAX_HINTS).map((template) => aggregateName({ template, name: near }));
  }

  async #lookUp(aggregated: string, list: 'tools' | 'prompts', client: Client): Promise<OwnName | undefined> {
    if (mayBeMapped(aggregated)) return this.#lookUpMapped(aggregated, list, client);
    const mayBeNew = isOwnName(aggregated) && this.#templatesListing(aggregated, client.owner).length === 0;
    if (list !== 'tools' || !mayBeNew) return undefined;
    this.#named = []; // its name may have been forgotten since
    await this.listing('tools', client);
    return this.knownTarget(aggregated, client.owner);
  }

  async #lookUpMapped(aggregated: string, list: ListField, client: Client): Promise<OwnName | undefined> {
    const templates = this.#templates(client.owner).filter((template) => mayBeFrom(aggregated, template));
    for (const { template, items } of await this.#lists.gather(list, templates, client))
      for (const { name } of items) {
        if (typeof name !== 'string' || !mayBeFrom(aggregated, template, name)) continue;
        if (aggregateName({ template, name }) !== aggregated) continue;
        this.#mapped.set(aggregated, { template, name });
        return { template, name };
      }
    return undefined;
  }

  /**
   * Learns which of the templates have a tool: the templates that were read and list it now. `listing`: by own name, the
   * templates that were found so far. `isRead`: false for a tool that the list of the template would not have.
   */
  #learnOwnName(
    name: string,
    template: string,
    listing: Map<string, Set<string>>,
    isRead: (template: string, name: string) => boolean,
  ): void {
    if (!isOwnName(name)) return;
    const known =
      listing.get(name) ??
      new Set(
        [...(this.#ownNames.get(name) ?? [])].filter((each) => each === template || !isRead(each, name)),
      );
    listing.set(name, known.add(template));
    this.#ownNames.set(name, known);
  }
}

export function listingOf(
  items: readonly JsonObject[],
  gathered: readonly GatheredList[],
  result?: () => JsonText,
): Listing {
  return {
    items,
    missing: gathered.flatMap(({ template, missing }) =>
      missing === undefined ? [] : { template, reason: missing },
    ),
    stale: gathered.flatMap(({ template, staleMs }) =>
      staleMs === undefined ? [] : { template, age_seconds: Math.round(staleMs / 1_000) },
    ),
    truncated: gathered.flatMap(({ template, cut }) =>
      cut === undefined ? [] : { template, reason: `The list ends early: ${cut}.` },
    ),
    result,
  };
}

/** True when a template is in both with different items. */
function isOtherList(one: readonly GatheredList[], other: readonly GatheredList[]): boolean {
  const items = new Map(other.map((each) => [each.template, each.items]));
  return one.some((each) => items.has(each.template) && items.get(each.template) !== each.items);
}

function* itemsIn(
  inputs: readonly GatheredList[],
): Generator<{ readonly template: string; readonly item: JsonObject }> {
  for (const { template, items } of inputs) for (const item of items) yield { template, item };
}

/**
 * True for a name that may be an own one: short, and not like an aggregate name, so that no template takes over a name
 * that a client may have allowed.
 */
function isOwnName(name: string): boolean {
  return name.length <= MAX_OWN_CHARACTERS && splitName(name) === undefined && !mayBeMapped(name);
}

function ownNameIn(aggregated: string): readonly string[] {
  const own = splitName(aggregated);
  return own === undefined ? [] : [own.name];
}

// Finds the template that owns an aggregate name or a resource. It learns from the lists, and reads them once more for an
// unknown name.

import { nearName } from '../../config/nearest.ts';
import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LruMap } from '../../domain/lru-map.ts';
import { type ListField, MODERN_VERSIONS } from '../../domain/mcp.ts';
import { mayCall } from '../../domain/rights.ts';
import type { Client, Owner } from '../ports.ts';
import { KEY_FIELDS } from './aggregate-items.ts';
import type { AggregateLists, GatheredList } from './aggregate-lists.ts';
import { aggregateName, mayBeFrom, mayBeMapped, type OwnName, splitName } from './aggregate-names.ts';
import { objectSchemaOf } from './aggregate-schemas.ts';

const MAX_REMEMBERED = 50_000;
/** URI templates remembered of one template: each is tried for a resource that no template lists. */
const MAX_PATTERNS = 1_000;
const MAX_PATTERN_CHARACTERS = 2_048;
/** Longest own name by which a tool is found. */
const MAX_OWN_CHARACTERS = 256;
/** Names that an error suggests. */
const MAX_HINTS = 3;

export interface AggregateListing {
  readonly items: JsonObject[];
  /** Templates whose items are missing because they did not answer. `reason`: a sentence for clients. */
  readonly missing: readonly { readonly template: string; readonly reason: string }[];
  /** Templates whose items are those of their last list. */
  readonly stale: readonly { readonly template: string; readonly age_seconds: number }[];
  /** Templates whose list ends before its last page. `reason`: a sentence for clients. */
  readonly truncated: readonly { readonly template: string; readonly reason: string }[];
}

/** Remembers the lists of all callers; each answer respects the permissions of its caller. */
export class AggregateDirectory {
  readonly #lists: AggregateLists;
  readonly #templates: (owner: Owner) => readonly string[];
  readonly #mapped = new LruMap<OwnName>(MAX_REMEMBERED);
  /** By the own name of a tool, the templates that list it. */
  readonly #ownNames = new LruMap<ReadonlySet<string>>(MAX_REMEMBERED);
  /** By URI, the templates that list it. */
  readonly #resources = new LruMap<Set<string>>(MAX_REMEMBERED);
  /** By template, the literals of the URI templates it lists. */
  readonly #patterns = new LruMap<LruMap<readonly string[]>>(LIMITS.templates);

  constructor(lists: AggregateLists, templates: (owner: Owner) => readonly string[]) {
    this.#lists = lists;
    this.#templates = templates;
  }

  /** The items of `listing`. */
  async list(list: ListField, client: Client): Promise<JsonObject[]> {
    return (await this.listing(list, client)).items;
  }

  /** One list over all templates of the owner: with aggregate names and without duplicates. */
  async listing(list: ListField, client: Client): Promise<AggregateListing> {
    const gathered = await this.#lists.gather(list, this.#templates(client.owner), client);
    const complete = gathered.filter(({ missing }) => missing === undefined);
    const read = new Set(complete.map(({ template }) => template));
    if (list === 'tools') this.#learnOwnNames(gathered, read);
    const isLegacy = !MODERN_VERSIONS.some((version) => version === client.profile.protocolVersion);
    const keys = new Set<string>();
    const listed: JsonObject[] = [];
    for (const { template, items } of complete) {
      if (list === 'resourceTemplates') this.#patterns.delete(template);
      for (const listedItem of items) {
        const item = aggregateItem(list, template, listedItem, isLegacy);
        const isFirst = keys.size < keys.add(item.key).size;
        if (isFirst) listed.push(item.shown);
        this.#learn(list, item, isFirst, read);
      }
    }
    return {
      items: listed,
      missing: gathered.flatMap(({ template, missing }) =>
        missing === undefined ? [] : { template, reason: missing },
      ),
      stale: gathered.flatMap(({ template, staleMs }) =>
        staleMs === undefined ? [] : { template, age_seconds: Math.round(staleMs / 1_000) },
      ),
      truncated: gathered.flatMap(({ template, cut }) =>
        cut === undefined ? [] : { template, reason: `The list ends early: ${cut}.` },
      ),
    };
  }

  /**
   * Template and own name of a tool or prompt. A tool is also found by its own name, which pages of MCP Apps use, if no other
   * template of the owner has one of that name. Undefined when it belongs to none.
   */
  async ownerOfName(
    aggregated: string,
    list: 'tools' | 'prompts',
    client: Client,
  ): Promise<OwnName | undefined> {
    return this.knownOwner(aggregated, client.owner, list) ?? this.#lookUp(aggregated, list, client);
  }

  /** The same without reading a list, in which the name may be new. */
  knownOwner(aggregated: string, owner: Owner, list: 'tools' | 'prompts' = 'tools'): OwnName | undefined {
    if (list === 'tools' && isOwnName(aggregated)) {
      const [template, ...others] = this.#listing(aggregated, owner);
      return template === undefined || others.length > 0 ? undefined : { template, name: aggregated };
    }
    const own = mayBeMapped(aggregated) ? this.#mapped.get(aggregated) : splitName(aggregated);
    if (own === undefined || !this.#templates(owner).includes(own.template)) return undefined;
    // The name of a tool that the caller may not call says nothing; the error of its template contains the own one.
    const isHidden = list === 'tools' && mayBeMapped(aggregated) && !mayCall(owner, own.template, own.name);
    return isHidden ? undefined : own;
  }

  /** The templates of the owner that list a tool of this own name which it may call. */
  #listing(name: string, owner: Owner): readonly string[] {
    const listing = this.#ownNames.get(name);
    if (listing === undefined) return [];
    return this.#templates(owner).filter(
      (template) => listing.has(template) && mayCall(owner, template, name),
    );
  }

  /**
   * The names that were probably meant instead of an unknown one: as listed, or the own name of a tool. For an own name that several
   * templates have: that of each, up to MAX_HINTS. Reads the list.
   */
  async nearestNames(written: string, list: 'tools' | 'prompts', client: Client): Promise<readonly string[]> {
    const shown = (await this.list(list, client)).map(({ name }) => String(name));
    const own = list === 'prompts' || splitName(written) !== undefined ? [] : shown.flatMap(ownNameIn);
    const near = nearName(written, [...own, ...shown]);
    if (near === undefined) return [];
    const listing = own.includes(near) ? this.#listing(near, client.owner) : [];
    if (listing.length < 2) return [near];
    return listing.slice(0, MAX_HINTS).map((template) => aggregateName({ template, name: near }));
  }

  async #lookUp(aggregated: string, list: 'tools' | 'prompts', client: Client): Promise<OwnName | undefined> {
    if (mayBeMapped(aggregated)) return this.#lookUpMapped(aggregated, list, client);
    const mayBeNew = isOwnName(aggregated) && this.#listing(aggregated, client.owner).length === 0;
    if (list !== 'tools' || !mayBeNew) return undefined;
    await this.list('tools', client);
    return this.knownOwner(aggregated, client.owner);
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

  /** The template of a resource: one that lists it, one with a URI template that fits, or the only template there is. */
  async ownerOfResource(uri: string, client: Client): Promise<string | undefined> {
    const [template] = (await this.ownersOfResources([uri], client)).keys();
    return template;
  }

  /** These resources by template; unknown ones are left out. Reads the lists at most once. */
  async ownersOfResources(uris: Iterable<string>, client: Client): Promise<Map<string, Set<string>>> {
    const templates = this.#templates(client.owner);
    // A template without an instance that offers resources owns nothing.
    const isOffering = (template: string) => this.#lists.offers('resources', template, client.owner);
    const ownerOf = (uri: string) =>
      templates.find((template) => this.#resources.get(uri)?.has(template) && isOffering(template)) ??
      templates.find((template) => this.#hasPattern(template, uri) && isOffering(template));
    if ([...uris].some((uri) => ownerOf(uri) === undefined))
      await Promise.all([this.list('resources', client), this.list('resourceTemplates', client)]);
    const only = templates.length === 1 ? templates[0] : undefined;
    const owners = new Map<string, Set<string>>();
    for (const uri of uris) {
      const template = ownerOf(uri) ?? only;
      if (template !== undefined) owners.set(template, (owners.get(template) ?? new Set()).add(uri));
    }
    return owners;
  }

  #hasPattern(template: string, uri: string): boolean {
    const patterns = this.#patterns.get(template)?.values() ?? [];
    return [...patterns].some((literals) => fitsBetween(literals, uri));
  }

  /** Of the templates that were read, those have a tool that list it now. */
  #learnOwnNames(gathered: readonly GatheredList[], read: ReadonlySet<string>): void {
    const listing = new Map<string, Set<string>>();
    for (const { template, items } of gathered)
      for (const { name } of items) {
        if (typeof name !== 'string' || !isOwnName(name)) continue;
        const known =
          listing.get(name) ?? [...(this.#ownNames.get(name) ?? [])].filter((each) => !read.has(each));
        listing.set(name, new Set(known).add(template));
      }
    for (const [name, templates] of listing) this.#ownNames.set(name, templates);
  }

  /** Of two items with one name the first one counts. Of the templates that were read, those own a resource that list it now. */
  #learn(list: ListField, { template, key, own }: AggregateItem, isFirst: boolean, read: Set<string>): void {
    if (own !== undefined) this.#mapped.set(key, own);
    if (list === 'resources') {
      const known = [...(this.#resources.get(key) ?? [])].filter((other) => !isFirst || !read.has(other));
      this.#resources.set(key, new Set(known).add(template));
    }
    if (list === 'resourceTemplates') this.#learnPattern(template, key);
  }

  #learnPattern(template: string, uriTemplate: string): void {
    if (uriTemplate.length > MAX_PATTERN_CHARACTERS) return;
    const patterns = this.#patterns.get(template) ?? new LruMap(MAX_PATTERNS);
    if (patterns.get(uriTemplate) === undefined) patterns.set(uriTemplate, uriTemplate.split(EXPRESSION));
    this.#patterns.set(template, patterns);
  }
}

/** Own names are short, and never like an aggregate name: no template takes over a name that a client may have allowed. */
function isOwnName(name: string): boolean {
  return name.length <= MAX_OWN_CHARACTERS && splitName(name) === undefined && !mayBeMapped(name);
}

function ownNameIn(aggregated: string): readonly string[] {
  const own = splitName(aggregated);
  return own === undefined ? [] : [own.name];
}

/** One expression of a URI template. Source: RFC 6570 section 2.2. */
const EXPRESSION = /\{[^{}]*\}/;

/** True when the text contains the literals in this order, the first at its start, the last at its end. */
function fitsBetween(literals: readonly string[], text: string): boolean {
  const [first = '', ...others] = literals;
  const last = others.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const literal of others) {
    const found = text.indexOf(literal, at);
    if (found === -1) return false;
    at = found + literal.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}

// Items of one template as the list of all templates shows them: tools and prompts with their aggregate names.

interface AggregateItem {
  readonly template: string;
  /** Unique in its list: aggregate name, URI, or URI template. */
  readonly key: string;
  readonly shown: JsonObject;
  /** Template and own name of a mapped name. */
  readonly own: OwnName | undefined;
}

/** `item` is one that `checkedItem` accepts. `isLegacy`: for a client of the legacy era. */
function aggregateItem(
  list: ListField,
  template: string,
  item: JsonObject,
  isLegacy: boolean,
): AggregateItem {
  const name = String(item[KEY_FIELDS[list]]);
  if (list === 'resources' || list === 'resourceTemplates')
    return { template, key: name, shown: item, own: undefined };
  const own = { template, name };
  const key = aggregateName(own);
  const isMapped = mayBeMapped(key);
  const shown: JsonObject = { ...item, ...(isMapped && originalOf(item, name)), name: key };
  if (isLegacy && list === 'tools' && isJsonObject(item.outputSchema)) {
    const outputSchema = objectSchemaOf(item.outputSchema);
    if (outputSchema === undefined) delete shown.outputSchema;
    else shown.outputSchema = outputSchema;
  }
  return { template, key, shown, own: isMapped ? own : undefined };
}

/** The name of an item whose aggregate name does not contain it: for programs, and for people where it has no title. */
function originalOf(item: JsonObject, name: string): JsonObject {
  const { title, annotations, _meta } = item;
  const hasTitle = title !== undefined || (isJsonObject(annotations) && annotations.title !== undefined);
  const meta = { ...(isJsonObject(_meta) && _meta), [ORIGINAL_NAME]: name };
  return hasTitle ? { _meta: meta } : { title: name, _meta: meta };
}

/** Key of `_meta`. */
const ORIGINAL_NAME = 'stagedoor/name';

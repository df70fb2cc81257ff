// Who owns what when all templates are served as one server: which template a joined name or a resource belongs to.
// Learned from the lists; what is not known is looked up in them once more.

import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { ListField } from '../../domain/mcp.ts';
import { isTooLong } from '../client-bounds.ts';
import { LruMap } from '../lru-map.ts';
import type { Client, Owner } from '../ports.ts';
import type { AggregateLists } from './aggregate-lists.ts';
import { aggregateName, mayBeCut, type OwnName, splitName } from './aggregate-names.ts';

/** Names that may have been cut, and resources, that are remembered. */
const MOST_REMEMBERED = 50_000;
/** URI templates remembered of one template: each is tried for a resource that nobody lists. */
const MOST_PATTERNS = 1_000;
/** Longest URI template that is turned into a pattern. */
const MOST_PATTERN_CHARACTERS = 2_048;

/** Where the directory learns, and whom it looks for. */
export interface DirectoryDeps {
  readonly lists: AggregateLists;
  readonly templates: (owner: Owner) => readonly string[];
}

/** Knows what was listed, to whomever. Who may use it is looked at in every answer. */
export class AggregateDirectory {
  readonly #deps: DirectoryDeps;
  readonly #items = new AggregateItems();
  readonly #cut = new LruMap<OwnName>(MOST_REMEMBERED);
  /** By URI, the templates that list it. */
  readonly #resources = new LruMap<Set<string>>(MOST_REMEMBERED);
  /** By template, the literals of the URI templates it lists. */
  readonly #patterns = new LruMap<LruMap<readonly string[]>>(LIMITS.templates);

  constructor(deps: DirectoryDeps) {
    this.#deps = deps;
  }

  /** One list over all templates of the owner: with joined names, and nothing twice. What has no name is left out. */
  async list(list: ListField, client: Client): Promise<JsonObject[]> {
    const { lists, templates } = this.#deps;
    const gathered = await lists.gather(list, templates(client.owner), client);
    const keys = new Set<string>();
    const listed: JsonObject[] = [];
    for (const { template, items } of gathered) {
      for (const one of items) {
        const item = this.#items.of(list, template, one);
        if (item === undefined) continue;
        const isFirst = keys.size < keys.add(item.key).size;
        if (isFirst) listed.push(item.shown);
        this.#learn(list, item, isFirst);
      }
    }
    return listed;
  }

  /** Whose tool or prompt it is. Undefined when no template of the owner can be meant. */
  async ownerOfName(
    aggregated: string,
    list: 'tools' | 'prompts',
    client: Client,
  ): Promise<OwnName | undefined> {
    if (mayBeCut(aggregated) && this.#cut.get(aggregated) === undefined) await this.list(list, client);
    const meant = this.#cut.get(aggregated) ?? splitName(aggregated);
    return meant !== undefined && this.#deps.templates(client.owner).includes(meant.template)
      ? meant
      : undefined;
  }

  /** Whose resource it is: who lists it, whose URI template fits, or the only template there is. */
  async ownerOfResource(uri: string, client: Client): Promise<string | undefined> {
    const [template] = (await this.ownersOfResources([uri], client)).keys();
    return template;
  }

  /** By template, which of these resources are its own. Those of nobody are left out. Looks them up once at most. */
  async ownersOfResources(uris: Iterable<string>, client: Client): Promise<Map<string, Set<string>>> {
    const { lists } = this.#deps;
    const templates = this.#deps.templates(client.owner);
    const offering = (one: string) => lists.offers('resources', one, client.owner);
    const owners = new Map<string, Set<string>>();
    const assign = (uri: string, template: string | undefined): boolean => {
      if (template === undefined) return false;
      owners.set(template, (owners.get(template) ?? new Set<string>()).add(uri));
      return true;
    };
    const unknown = [...uris].filter((uri) => !assign(uri, this.#knownOwner(uri, templates, offering)));
    if (unknown.length === 0) return owners;
    await Promise.all([this.list('resources', client), this.list('resourceTemplates', client)]);
    const only = templates.length === 1 ? templates[0] : undefined;
    for (const uri of unknown) assign(uri, this.#knownOwner(uri, templates, offering) ?? only);
    return owners;
  }

  /** Those who are gone own nothing. */
  #knownOwner(
    uri: string,
    templates: readonly string[],
    isThere: (template: string) => boolean,
  ): string | undefined {
    const listing = this.#resources.get(uri);
    const fits = (template: string) =>
      [...(this.#patterns.get(template)?.values() ?? [])].some((literals) => fitsBetween(literals, uri));
    return (
      templates.find((template) => listing?.has(template) && isThere(template)) ??
      templates.find((template) => fits(template) && isThere(template))
    );
  }

  /** Of two with one name the first is the one that is meant. */
  #learn(list: ListField, { template, key, own }: AggregateItem, isFirst: boolean): void {
    if (own !== undefined && isFirst) this.#cut.set(key, own);
    if (list === 'resources') this.#resources.set(key, (this.#resources.get(key) ?? new Set()).add(template));
    if (list === 'resourceTemplates') this.#learnPattern(template, key);
  }

  #learnPattern(template: string, uriTemplate: string): void {
    if (uriTemplate.length > MOST_PATTERN_CHARACTERS) return;
    const patterns = this.#patterns.get(template) ?? new LruMap(MOST_PATTERNS);
    if (patterns.get(uriTemplate) === undefined) patterns.set(uriTemplate, uriTemplate.split(EXPRESSION));
    this.#patterns.set(template, patterns);
  }
}

/** One expression of a URI template. Source: RFC 6570 section 2.2. */
const EXPRESSION = /\{[^{}]*\}/;

/** True when the literals stand in the text in this order, the first at its begin, the last at its end. */
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

// What one template lists, as it is shown in the list of all: tools and prompts by their joined names, and everything with what
// clients insist on, since one item that they refuse would cost them the whole list.

/** One item of one template. */
interface AggregateItem {
  readonly template: string;
  /** What tells it from others in its list: joined name, URI, or URI template. */
  readonly key: string;
  readonly shown: JsonObject;
  /** Whose it is, where the aggregate name does not say so by itself. */
  readonly own: OwnName | undefined;
}

/** Makes items, each once: what comes from memory comes again and again. */
export class AggregateItems {
  readonly #made = new WeakMap<JsonObject, AggregateItem>();

  /** Undefined for an item that nobody could ask for. */
  of(list: ListField, template: string, item: JsonObject): AggregateItem | undefined {
    const known = this.#made.get(item);
    if (known?.template === template) return known;
    const made =
      list === 'tools' || list === 'prompts' ? named(list, template, item) : located(list, template, item);
    if (made !== undefined) this.#made.set(item, made);
    return made;
  }
}

function named(list: 'tools' | 'prompts', template: string, item: JsonObject): AggregateItem | undefined {
  const { name } = item;
  if (typeof name !== 'string' || name === '' || isTooLong(name)) return undefined;
  const own = { template, name };
  const key = aggregateName(own);
  const isPlain = splitName(key)?.name === name && !mayBeCut(key);
  const shown = { ...item, name: key };
  return {
    template,
    key,
    shown: list === 'tools' ? { ...shown, inputSchema: schemaOf(item) } : shown,
    own: isPlain ? undefined : own,
  };
}

function located(
  list: 'resources' | 'resourceTemplates',
  template: string,
  item: JsonObject,
): AggregateItem | undefined {
  const key = list === 'resources' ? item.uri : item.uriTemplate;
  if (typeof key !== 'string' || key === '' || isTooLong(key)) return undefined;
  const shown = typeof item.name === 'string' ? item : { ...item, name: key };
  return { template, key, shown, own: undefined };
}

/** Source: MCP 2025-11-25 schema, Tool: an object schema, which may say nothing else. */
function schemaOf({ inputSchema }: JsonObject): JsonObject {
  if (!isJsonObject(inputSchema)) return { type: 'object' };
  return inputSchema.type === 'object' ? inputSchema : { ...inputSchema, type: 'object' };
}

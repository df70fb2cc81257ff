// Finds the template that owns a resource, from what the lists of resources and of URI templates say. A URI that several templates
// list belongs to the first of them.

import type { JsonObject } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LruMap } from '../../domain/lru-map.ts';
import type { ListField } from '../../domain/mcp.ts';
import type { Client, Owner } from '../ports.ts';
import { KEY_FIELDS } from './aggregate-items.ts';
import type { AggregateLists, GatheredList } from './aggregate-lists.ts';

const MAX_REMEMBERED = 50_000;
/** URI templates remembered of one template: each is tried for a resource that no template lists. */
const MAX_PATTERNS = 1_000;
const MAX_PATTERN_CHARACTERS = 2_048;

export interface ResourceOwnersDeps {
  readonly lists: Pick<AggregateLists, 'offers'>;
  /** The templates of a caller, in their order. */
  readonly templates: (owner: Owner) => readonly string[];
  /** Reads a list, which is learnt then. */
  readonly read: (list: ListField, client: Client) => Promise<unknown>;
  /** False for a resource that is not served. Default: all are. */
  readonly mayRead?: (template: string, uri: string) => boolean;
}

/** Remembers the lists of all callers; each answer respects the permissions of its caller. */
export class ResourceOwners {
  readonly #deps: ResourceOwnersDeps;
  /** By URI, the templates that list it. */
  readonly #resources = new LruMap<Set<string>>(MAX_REMEMBERED);
  /** By template, the literals of the URI templates it lists. */
  readonly #patterns = new LruMap<LruMap<readonly string[]>>(LIMITS.templates);

  constructor(deps: ResourceOwnersDeps) {
    this.#deps = deps;
  }

  /** Of the templates that were read, those own a resource that list it now. */
  learn(list: ListField, gathered: readonly GatheredList[]): void {
    if (list !== 'resources' && list !== 'resourceTemplates') return;
    const complete = gathered.filter(({ missing }) => missing === undefined);
    const read = new Set(complete.map(({ template }) => template));
    const seen = new Set<string>();
    for (const { template, items } of complete) {
      if (list === 'resourceTemplates') this.#patterns.delete(template);
      for (const item of items) {
        const uri = String(item[KEY_FIELDS[list]]);
        if (list === 'resourceTemplates') this.#learnPattern(template, uri);
        else {
          const isFirst = seen.size < seen.add(uri).size;
          const known = [...(this.#resources.get(uri) ?? [])].filter((each) => !isFirst || !read.has(each));
          this.#resources.set(uri, new Set(known).add(template));
        }
      }
    }
  }

  /** The items of a list as they are shown: each URI once. */
  shown(
    list: 'resources' | 'resourceTemplates',
    chosen: readonly { readonly own: string; readonly item: JsonObject }[],
  ): readonly JsonObject[] {
    const seen = new Set<string>();
    const isFirst = (own: string) => seen.size < seen.add(own).size;
    return list === 'resources' || list === 'resourceTemplates'
      ? chosen.filter(({ own }) => isFirst(own)).map(({ item }) => item)
      : [];
  }

  /** The template of a resource: one that lists it, one with a URI template that fits, or the only template there is. */
  async ownerOf(uri: string, client: Client): Promise<string | undefined> {
    const [template] = (await this.ownersOf([uri], client)).keys();
    return template;
  }

  /** These resources by template; unknown ones are left out. Reads the lists at most once. */
  async ownersOf(uris: Iterable<string>, client: Client): Promise<Map<string, Set<string>>> {
    const { lists, mayRead = () => true } = this.#deps;
    const templates = this.#deps.templates(client.owner);
    // A template without an instance that offers resources owns nothing.
    const isOffering = (template: string) => lists.offers('resources', template, client.owner);
    const ownerOf = (uri: string) =>
      templates.find(
        (each) => this.#resources.get(uri)?.has(each) && mayRead(each, uri) && isOffering(each),
      ) ?? templates.find((each) => this.#hasPattern(each, uri) && mayRead(each, uri) && isOffering(each));
    const asked = [...uris];
    if (asked.some((uri) => ownerOf(uri) === undefined))
      await Promise.all([this.#deps.read('resources', client), this.#deps.read('resourceTemplates', client)]);
    const only = templates.length === 1 ? templates[0] : undefined;
    const owners = new Map<string, Set<string>>();
    for (const uri of asked) {
      const template = ownerOf(uri) ?? (only !== undefined && mayRead(only, uri) ? only : undefined);
      if (template !== undefined) owners.set(template, (owners.get(template) ?? new Set()).add(uri));
    }
    return owners;
  }

  #hasPattern(template: string, uri: string): boolean {
    const patterns = this.#patterns.get(template)?.values() ?? [];
    return [...patterns].some((literals) => fitsBetween(literals, uri));
  }

  #learnPattern(template: string, uriTemplate: string): void {
    if (uriTemplate.length > MAX_PATTERN_CHARACTERS) return;
    const patterns = this.#patterns.get(template) ?? new LruMap(MAX_PATTERNS);
    if (patterns.get(uriTemplate) === undefined) patterns.set(uriTemplate, uriTemplate.split(EXPRESSION));
    this.#patterns.set(template, patterns);
  }
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

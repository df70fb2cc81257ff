// What the lists of an aggregate's templates say about URIs: which templates have a resource, a page of MCP Apps or a skill, and
// which URI templates they list. Source: ADR 234.

import type { JsonObject } from '../../../domain/json/json.ts';
import { LIMITS } from '../../../domain/limits.ts';
import type { ListField } from '../../../domain/mcp/mcp.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import { SerialQueue } from '../../../domain/time/serial-queue.ts';
import { eachInGroups } from '../../../domain/time/task-groups.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import { KEY_FIELDS } from '../lists/acceptable-items.ts';
import type { GatheredList } from '../lists/aggregate-lists.ts';
import { ownedAs, type ResourceTarget } from './composed-uris.ts';
import { appPageOf, isPage } from './mcp-apps.ts';

/** What says that a template has a URI, in the order in which it counts: a tool of it has it as its page, or it lists it. */
const SOURCES = ['pages', 'listed', 'skills'] as const;
/** URIs, and skills, of each source; a long one counts as several. */
const MAX_REMEMBERED = 50_000;
const COUNTED_CHARACTERS = 256;
/** URI templates remembered of one template: each is tried for a resource that no template lists. */
const MAX_PATTERNS = 250;
const MAX_PATTERN_CHARACTERS = 2_048;
/** Of each: what is kept of a text between two expressions takes a hundred times as much memory as the shortest one. */
const MAX_EXPRESSIONS = 32;

export interface LearnedUrisDeps {
  /** False for a tool that is not served. Default: all are. */
  readonly takesTool?: (template: string, name: string) => boolean;
  /** Runs the tasks in which lists are learned and shown. */
  readonly scheduler: TaskScheduler;
}

/** The URIs that a list, or the skills, of a template name. */
export interface FoundUris {
  readonly template: string;
  readonly uris: readonly string[];
}

type UriSource = (typeof SOURCES)[number];

/** A list that names URIs: tools name their pages. */
type UriList = Exclude<ListField, 'prompts'>;

/** What is learned from the lists of all callers, whatever their permissions. */
export class LearnedUris {
  readonly #deps: LearnedUrisDeps;
  /** The templates of each URI or skill. */
  readonly #templates: Readonly<Record<UriSource, LruMap<ReadonlySet<string>>>> = {
    // When one list pushes entries out, the other lists have to be learned again.
    listed: new LruMap(MAX_REMEMBERED, () => this.#forgetOthers(), sizeOf),
    pages: new LruMap(MAX_REMEMBERED, undefined, sizeOf),
    skills: new LruMap(MAX_REMEMBERED, undefined, sizeOf),
  };
  /** The URI templates that a template lists, by template. */
  readonly #patterns = new LruMap<readonly UriPattern[]>(LIMITS.templates);
  /** The newest lists of all, which are learned or being learned: streams with unknown URIs read the same ones again and again. */
  readonly #learned = new Map<UriList, Learned>();
  /** Lists are learned one after another, each in several turns. */
  readonly #queue = new SerialQueue();
  /** The list that is being learned. */
  #current: UriList | undefined;
  #version = 0;
  #hasShared = false;

  constructor(deps: LearnedUrisDeps) {
    this.#deps = deps;
  }

  get version(): number {
    return this.#version;
  }

  get hasShared(): boolean {
    return this.#hasShared;
  }

  /** What says that the template has the URI; undefined when nothing does. */
  sourceOf(uri: string, template: string): UriSource | undefined {
    const key = ownedAs(uri);
    return SOURCES.find((source) => this.#templates[source].get(key)?.has(template));
  }

  /** False when at most one template has the URI. */
  mayBeShared(uri: string): boolean {
    const key = ownedAs(uri);
    const sizes = Object.values(this.#templates).map((source) => source.get(key)?.size ?? 0);
    return sizes.reduce((sum, size) => sum + size) >= 2;
  }

  /** The URI templates of the template that fit. */
  patternsOf(template: string, uri: string): readonly string[] {
    const patterns = this.#patterns.get(template) ?? [];
    return patterns.flatMap((pattern) => (fits(pattern, uri) ? pattern.uriTemplate : []));
  }

  /**
   * Learns these lists, unless they are known. `isWhole`: they say about each URI in them which of these templates have it.
   * Resolves with true when there are pages of MCP Apps.
   */
  async learn(list: UriList, lists: readonly GatheredList[], isWhole: boolean): Promise<boolean> {
    const known = isWhole ? this.#learned.get(list) : undefined;
    const isKnown = known !== undefined && isSameList(known.lists, lists);
    return isKnown ? known.hasPages : this.#learnNew(list, lists, isWhole);
  }

  learnSkills(found: readonly FoundUris[]): Promise<void> {
    return this.#queue.take(() => this.#note('skills', found));
  }

  async #learnNew(list: UriList, complete: readonly GatheredList[], isWhole: boolean): Promise<boolean> {
    const found = list === 'tools' ? this.#pagesIn(complete) : urisIn(list, complete);
    if (list === 'tools' && found.length === 0) return false;
    const hasPages = this.#queue.take(() => this.#learnFound(list, found, isWhole));
    if (isWhole) {
      const lists = complete.map(({ template, items }) => ({ template, items: new WeakRef(items) }));
      const learned = { lists, hasPages };
      this.#learned.set(list, learned);
      hasPages.catch(() => this.#learned.get(list) === learned && this.#learned.delete(list));
    }
    return hasPages;
  }

  readonly #forgetOthers = (): void => {
    for (const list of this.#learned.keys()) if (list !== this.#current) this.#learned.delete(list);
  };

  /** The pages of MCP Apps, by template; empty when no template has any. */
  #pagesIn(complete: readonly GatheredList[]): readonly FoundUris[] {
    const { takesTool = () => true } = this.#deps;
    const found = complete.map(({ template, items }) => ({
      template,
      uris: items.flatMap((tool) => {
        const page = appPageOf(tool); // few have one, and globs are matched for these only
        return page !== undefined && takesTool(template, String(tool.name)) ? page : [];
      }),
    }));
    return found.some(({ uris }) => uris.length > 0) ? found : [];
  }

  async #learnFound(list: UriList, found: readonly FoundUris[], isWhole: boolean): Promise<boolean> {
    this.#current = list;
    if (list === 'resourceTemplates') for (const each of found) this.#learnPatterns(each);
    await this.#note(list === 'tools' ? 'pages' : 'listed', found, isWhole);
    return list === 'tools' || (list === 'resources' && found.some(({ uris }) => uris.some(isPage)));
  }

  /** Notes which templates have the found targets. `isComplete`: targets that these templates do not list are dropped. */
  async #note(source: UriSource, found: readonly FoundUris[], isComplete = true): Promise<void> {
    const known = this.#templates[source];
    const read = new Set(isComplete ? found.map(({ template }) => template) : []);
    const having = new Map<string, Set<string>>();
    const listed = found.flatMap(({ template, uris }) => uris.map((uri) => ({ template, uri })));
    const collect = ({ template, uri }: ResourceTarget): void => {
      const key = ownedAs(uri);
      const templates =
        having.get(key) ?? new Set([...(known.get(key) ?? [])].filter((each) => !read.has(each)));
      having.set(key, templates.add(template));
    };
    await eachInGroups(listed, collect, this.#deps.scheduler);
    const note = ([key, templates]: readonly [string, ReadonlySet<string>]): void => {
      const before = known.get(key);
      if (before?.size === templates.size && [...before].every((each) => templates.has(each))) return;
      known.set(key, templates);
      this.#version += 1;
      const all = Object.values(this.#templates).flatMap((each) => [...(each.get(key) ?? [])]);
      this.#hasShared ||= new Set(all).size > 1;
    };
    await eachInGroups(having, note, this.#deps.scheduler);
  }

  #learnPatterns({ template, uris }: FoundUris): void {
    this.#patterns.set(template, uris.filter(isRemembered).slice(-MAX_PATTERNS).map(patternOf));
  }
}

function sizeOf(_templates: ReadonlySet<string>, uri: string): number {
  return Math.ceil((uri.length + 1) / COUNTED_CHARACTERS);
}

interface Learned {
  /** Weak: they are as long as the lists of the aggregate. */
  readonly lists: readonly { readonly template: string; readonly items: WeakRef<readonly JsonObject[]> }[];
  /** Whether there are pages of MCP Apps. */
  readonly hasPages: Promise<boolean>;
}

function isSameList(known: Learned['lists'], lists: readonly GatheredList[]): boolean {
  return (
    known.length === lists.length &&
    known.every(({ template, items }, index) => {
      const list = lists[index];
      return template === list?.template && items.deref() === list.items;
    })
  );
}

function urisIn(
  list: 'resources' | 'resourceTemplates',
  complete: readonly GatheredList[],
): readonly FoundUris[] {
  const field = KEY_FIELDS[list];
  return complete.map(({ template, items }) => ({
    template,
    uris: items.map((item) => String(item[field])),
  }));
}

/** The form of one expression of a URI template. Source: RFC 6570 section 2.2. */
const EXPRESSION = /\{[^{}]*\}/;

interface UriPattern {
  readonly uriTemplate: string;
  /** The texts around its expressions. */
  readonly first: string;
  readonly between: readonly SearchedText[];
  /** Undefined when it has no expression. */
  readonly last: string | undefined;
}

function isRemembered(uriTemplate: string): boolean {
  if (uriTemplate.length > MAX_PATTERN_CHARACTERS) return false;
  return uriTemplate.split('{', MAX_EXPRESSIONS + 2).length <= MAX_EXPRESSIONS + 1;
}

function patternOf(uriTemplate: string): UriPattern {
  const [first = '', ...others] = uriTemplate.split(EXPRESSION);
  const last = others.pop();
  return { uriTemplate, first, between: others.map((text) => new SearchedText(text)), last };
}

/** True when the text has the literals of the pattern in their order, the first at its start, the last at its end. */
function fits({ first, between, last }: UriPattern, text: string): boolean {
  if (last === undefined) return text === first;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (const literal of between) {
    at = literal.endIn(text, at);
    if (at === NOWHERE) return false;
  }
  return text.length - last.length >= at;
}

const NOWHERE = -1;

/**
 * A text that is searched for in a few steps for each character of another one. `indexOf` may take the product of both lengths,
 * and servers list the one, while callers send the other. Source: the algorithm of Knuth, Morris and Pratt.
 */
class SearchedText {
  readonly #text: string;
  /** For each of its beginnings the length of the longest shorter one that it ends with. */
  readonly #shorter: Uint16Array;

  constructor(text: string) {
    this.#text = text;
    this.#shorter = new Uint16Array(text.length);
    for (let at = 1, length = 0; at < text.length; at += 1) {
      while (length > 0 && text[at] !== text[length]) length = this.#shorter[length - 1] ?? 0;
      if (text[at] === text[length]) length += 1;
      this.#shorter[at] = length;
    }
  }

  /** The place behind its first occurrence from `from` on, or NOWHERE. */
  endIn(text: string, from: number): number {
    const wanted = this.#text;
    const shorter = this.#shorter;
    let at = from;
    let length = 0;
    while (length < wanted.length && at < text.length) {
      const isNext = text.charCodeAt(at) === wanted.charCodeAt(length);
      if (isNext) length += 1;
      if (isNext || length === 0) at += 1;
      else length = shorter[length - 1] ?? 0;
    }
    return length === wanted.length ? at : NOWHERE;
  }
}

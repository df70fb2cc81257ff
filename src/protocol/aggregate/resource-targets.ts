// The URIs of an aggregate: the templates that have a resource, the shown form of its URI, and the target of a URI. It reads the
// lists of resources, of URI templates, of tools with pages and of skills. Source: ADR 234.

import type { JsonObject } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Client, Owner } from '../../domain/mcp/client.ts';
import type { ListField } from '../../domain/mcp/mcp.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { SerialQueue } from '../../domain/time/serial-queue.ts';
import { eachInGroups } from '../../domain/time/task-groups.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { isTooLong } from '../client-bounds.ts';
import { composedUri, isOfSkill, ownedAs, partsOfComposed, type ResourceTarget } from './composed-uris.ts';
import { KEY_FIELDS } from './items.ts';
import type { AggregateLists, GatheredList } from './lists.ts';
import { appPageOf, isPage, withPage } from './mcp-apps.ts';

const MAX_REMEMBERED = 50_000;
const MAX_READERS = 10_000;
/** URI templates remembered of one template: each is tried for a resource that no template lists. */
const MAX_PATTERNS = 1_000;
const MAX_PATTERN_CHARACTERS = 2_048;
/** The most times that a URI is composed, because another template lists one that is like the composed one. */
const MAX_COMPOSED = 3;
/** The extension of skills. */
export const SKILLS = 'skills';

export interface ResourceTargetsDeps {
  readonly lists: Pick<AggregateLists, 'offers' | 'announces' | 'gather'>;
  /** The templates of a caller, in their order. */
  readonly templates: (owner: Owner) => readonly string[];
  /** False for a resource that is not served. Default: all are. */
  readonly mayRead?: (template: string, uri: string) => boolean;
  /** False for a template of which this caller gets nothing, though `templates` has it. URIs are shown to all callers alike. */
  readonly mayUse?: (owner: Owner, template: string) => boolean;
  /** False for a tool that is not served. Default: all are. */
  readonly takesTool?: (template: string, name: string) => boolean;
  /** Runs the tasks in which lists are learned and shown. */
  readonly scheduler: TaskScheduler;
}

interface FoundUris {
  readonly template: string;
  readonly uris: readonly string[];
}

/** The source that says that a template has a URI. */
type UriSource = 'listed' | 'pages' | 'skills';

/** Remembers the lists of all callers; each answer respects the permissions of its caller. */
export class ResourceTargets {
  readonly #deps: ResourceTargetsDeps;
  /** The templates that have a URI or skill, by that: they list it, or a tool of theirs has it as its page. */
  readonly #having: Readonly<Record<UriSource, LruMap<ReadonlySet<string>>>> = {
    // When one list pushes entries out, the other lists have to be learned again.
    listed: new LruMap(MAX_REMEMBERED, () => this.#forgetOthers()),
    pages: new LruMap(MAX_REMEMBERED),
    skills: new LruMap(MAX_REMEMBERED),
  };
  /** The literals of the URI templates that a template lists, by template. */
  readonly #patterns = new LruMap<LruMap<readonly string[]>>(LIMITS.templates);
  /** Ids of the callers for which the resources of the aggregate were read. */
  readonly #readers = new LruMap<true>(MAX_READERS);
  /** The newest lists of all, which are learned or being learned: streams with unknown URIs read the same ones again and again. */
  readonly #learned = new Map<ListField, Learned>();
  /** Lists are learned one after another, each in several turns. */
  readonly #queue = new SerialQueue();
  /** The list that is being learned. */
  #current: ListField | undefined;
  #version = 0;
  #hasShared = false;

  constructor(deps: ResourceTargetsDeps) {
    this.#deps = deps;
  }

  /** A number that changes when a template was found to have a URI, or not to have it any more. */
  get version(): number {
    return this.#version;
  }

  /** False when no URI was ever found at two templates. */
  get hasShared(): boolean {
    return this.#hasShared;
  }

  /**
   * Learns the targets of each list before its items are shown. For a list with pages of MCP Apps it also reads the list that has
   * the pages.
   */
  async learn(list: ListField, gathered: readonly GatheredList[], client: Client): Promise<void> {
    const related = RELATED[list];
    const hasPages = await this.#learn(list, gathered, client);
    if (related && hasPages) await this.#read(related, client);
  }

  /** True for a resource that clients may read, if the template has it. */
  isServed(template: string, uri: string): boolean {
    return this.#deps.mayRead?.(template, uri) ?? true;
  }

  /** Learns which of the templates have a skill: the templates that were read and list it now. */
  learnSkills(found: readonly FoundUris[]): Promise<void> {
    return this.#queue.take(() => this.#note('skills', found));
  }

  /** The URI of a resource of a template, or the URI template of several, as the caller sees it. */
  shown(template: string, uri: string, owner: Owner): string {
    if (!this.#isShared(uri, owner, template)) return uri;
    let shown = uri;
    for (let times = 0; times < MAX_COMPOSED; times += 1) {
      const composed = composedUri({ template, uri: shown });
      if (composed === undefined || isTooLong(composed)) return uri;
      shown = composed;
      const isTaken = this.#deps.templates(owner).some((each) => this.#has(each, shown, owner));
      if (!isTaken && this.#composedOf(shown, owner)?.uri === uri) return shown;
    }
    return uri;
  }

  /** The items of a list as they are shown: each URI once. */
  async shownItems(
    list: 'resources' | 'resourceTemplates',
    items: readonly { readonly template: string; readonly item: JsonObject }[],
    owner: Owner,
  ): Promise<readonly JsonObject[]> {
    const field = KEY_FIELDS[list];
    const seen = new Set<string>();
    const shown: JsonObject[] = [];
    const show = ({ template, item }: (typeof items)[number]): void => {
      const own = String(item[field]);
      const uri = this.shown(template, own, owner);
      if (seen.size === seen.add(uri).size) return;
      shown.push(uri === own ? item : { ...item, [field]: uri });
    };
    await eachInGroups(items, show, this.#deps.scheduler);
    return shown;
  }

  /** The tool with the page that clients read. The same object where that is the own one. */
  shownTool(template: string, tool: JsonObject, owner: Owner): JsonObject {
    const own = appPageOf(tool);
    const uri = own === undefined ? undefined : this.shown(template, own, owner);
    return uri === own || uri === undefined ? tool : withPage(tool, uri);
  }

  /**
   * The target of a URI, plain or composed: at a template that has it, or one with a URI template that fits, or the only template
   * there is. Reads lists that may have it at most once. `readSkills` makes `learnSkills` be called.
   */
  async targetOf(
    uri: string,
    client: Client,
    readSkills: () => Promise<unknown>,
  ): Promise<ResourceTarget | undefined> {
    return (await this.targetsOf([uri], client, readSkills, AT_ONCE)).get(uri);
  }

  /**
   * The targets of several URIs (see `targetOf`), each found in a task of `scheduler`; unknown ones are left out. `uris` is
   * iterated over twice.
   */
  async targetsOf(
    uris: Iterable<string>,
    client: Client,
    readSkills: () => Promise<unknown>,
    scheduler: Pick<TaskScheduler, 'each'>,
  ): Promise<Map<string, ResourceTarget>> {
    const { owner } = client;
    // Only when its lists were read is it certain what they do not have: a listed URI goes before all others.
    const hasRead = this.#readers.has(owner.id);
    const unknown: string[] = [];
    await scheduler.each(uris, (uri) => {
      const found = hasRead ? this.#known(uri, owner) : this.#listedAt(uri, owner);
      if (found === undefined) unknown.push(uri);
    });
    if (unknown.length > 0) {
      const lists = [
        'resources',
        'resourceTemplates',
        ...(unknown.some(isPage) ? ['tools' as const] : []),
      ] as const;
      const reading = lists.map((list) => this.#read(list, client));
      const hasSkills = unknown.some(isOfSkill) && this.#withSkills(owner).length > 0;
      await Promise.all([...reading, hasSkills && readSkills()]);
    }
    const mayUse = (template: string) => this.#deps.mayUse?.(owner, template) ?? true;
    const usable = this.#deps.templates(owner).filter(mayUse);
    const [only, ...others] = usable;
    const targets = new Map<string, ResourceTarget>();
    await scheduler.each(uris, (uri) => {
      const target = this.#known(uri, owner);
      if (target !== undefined) {
        // A plain URI that several have: results of tools name it so, and the caller may use a later one.
        const own = mayUse(target.template) ? target : this.#known(uri, owner, usable);
        if (own !== undefined) targets.set(uri, own);
      } else if (only !== undefined && others.length === 0 && this.isServed(only, uri))
        targets.set(uri, { template: only, uri });
    });
    return targets;
  }

  /** A listed URI goes before a composed one, and both before a URI template: first one that is shown composed, too. */
  #known(uri: string, owner: Owner, templates = this.#deps.templates(owner)): ResourceTarget | undefined {
    const isListed = (template: string, own: string) => this.#mayReadListed(template, own, owner);
    const fits = (template: string, own: string) =>
      this.#patternsOf(template, own).length > 0 &&
      this.isServed(template, own) &&
      this.#offers(template, owner);
    const fitsAsShown = (template: string, own: string) =>
      fits(template, own) &&
      this.#patternsOf(template, own).some((each) => this.shown(template, each, owner) !== each);
    const plain = (): ResourceTarget | undefined => {
      const template = templates.find((each) => fits(each, uri));
      return template === undefined ? undefined : { template, uri };
    };
    return (
      this.#listedAt(uri, owner, templates) ??
      this.#composedOf(uri, owner, isListed, templates) ??
      this.#composedOf(uri, owner, fitsAsShown, templates) ??
      plain() ??
      this.#composedOf(uri, owner, fits, templates)
    );
  }

  #listedAt(uri: string, owner: Owner, templates = this.#deps.templates(owner)): ResourceTarget | undefined {
    const template = templates.find((each) => this.#mayReadListed(each, uri, owner));
    return template === undefined ? undefined : { template, uri };
  }

  #mayReadListed(template: string, uri: string, owner: Owner): boolean {
    return this.isServed(template, uri) && this.#has(template, uri, owner);
  }

  /** The target that a composed URI stands for. */
  #composedOf(
    uri: string,
    owner: Owner,
    isThere = (template: string, own: string) => this.#has(template, own, owner),
    templates = this.#deps.templates(owner),
  ): ResourceTarget | undefined {
    let left = uri;
    for (let times = 0; times < MAX_COMPOSED; times += 1) {
      const parts = partsOfComposed(left);
      const found = parts.find(
        ({ template, uri: own }) => templates.includes(template) && isThere(template, own),
      );
      if (found !== undefined) return found;
      const [first] = parts;
      if (first === undefined || partsOfComposed(first.uri)[0]?.template !== first.template) return undefined;
      left = first.uri;
    }
    return undefined;
  }

  #isShared(uri: string, owner: Owner, template: string): boolean {
    const key = ownedAs(uri);
    const having = Object.values(this.#having).map((source) => source.get(key)?.size ?? 0);
    if (having.reduce((sum, size) => sum + size) < 2) return false;
    const templates = this.#deps.templates(owner).filter((each) => this.#has(each, uri, owner));
    return templates.length > 1 && templates.includes(template);
  }

  /**
   * True when the template has the URI. A tool may also name a page that is not served: a client must not get the page of
   * another server.
   */
  #has(template: string, uri: string, owner: Owner): boolean {
    const key = ownedAs(uri);
    const { listed, pages, skills } = this.#having;
    if (pages.get(key)?.has(template)) return this.#offers(template, owner);
    if (!this.isServed(template, uri)) return false;
    if (listed.get(key)?.has(template)) return this.#offers(template, owner);
    return skills.get(key)?.has(template) === true && this.#deps.lists.announces(SKILLS, template, owner);
  }

  /** False for a template without an instance that offers resources. */
  #offers(template: string, owner: Owner): boolean {
    return this.#deps.lists.offers('resources', template, owner);
  }

  #withSkills(owner: Owner): readonly string[] {
    return this.#deps.templates(owner).filter((each) => this.#deps.lists.announces(SKILLS, each, owner));
  }

  async #read(list: ListField, client: Client): Promise<void> {
    const { lists, templates } = this.#deps;
    await this.#learn(list, await lists.gather(list, templates(client.owner), client), client);
  }

  /** Resolves with true when there are pages of MCP Apps. */
  async #learn(list: ListField, gathered: readonly GatheredList[], { owner }: Client): Promise<boolean> {
    if (list === 'prompts') return false;
    const complete = gathered.filter(({ missing }) => missing === undefined);
    // A list of the tools that its caller may call says nothing about the pages of others.
    const isWhole = list !== 'tools' || owner.tools === undefined;
    const known = isWhole ? this.#learned.get(list) : undefined;
    const isKnown = known !== undefined && isSameList(known.lists, complete);
    const hasPages = await (isKnown ? known.hasPages : this.#learnNew(list, complete, isWhole));
    if (list === 'resources') this.#readers.set(owner.id, true);
    return hasPages;
  }

  async #learnNew(
    list: Exclude<ListField, 'prompts'>,
    complete: readonly GatheredList[],
    isWhole: boolean,
  ): Promise<boolean> {
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

  async #learnFound(
    list: Exclude<ListField, 'prompts'>,
    found: readonly FoundUris[],
    isWhole: boolean,
  ): Promise<boolean> {
    this.#current = list;
    if (list === 'resourceTemplates') for (const each of found) this.#learnPatterns(each);
    await this.#note(list === 'tools' ? 'pages' : 'listed', found, isWhole);
    return list === 'tools' || (list === 'resources' && found.some(({ uris }) => uris.some(isPage)));
  }

  /** Notes which templates have the found targets. `isComplete`: targets that these templates do not list are dropped. */
  async #note(source: UriSource, found: readonly FoundUris[], isComplete = true): Promise<void> {
    const known = this.#having[source];
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
      const all = Object.values(this.#having).flatMap((each) => [...(each.get(key) ?? [])]);
      this.#hasShared ||= new Set(all).size > 1;
    };
    await eachInGroups(having, note, this.#deps.scheduler);
  }

  /** The URI templates of the template that fit. */
  #patternsOf(template: string, uri: string): readonly string[] {
    const patterns = this.#patterns.get(template)?.entries() ?? [];
    return [...patterns].flatMap(([uriTemplate, literals]) =>
      fitsBetween(literals, uri) ? uriTemplate : [],
    );
  }

  #learnPatterns({ template, uris }: { readonly template: string; readonly uris: readonly string[] }): void {
    const patterns = new LruMap<readonly string[]>(MAX_PATTERNS);
    for (const uri of uris)
      if (uri.length <= MAX_PATTERN_CHARACTERS) patterns.set(uri, uri.split(EXPRESSION));
    this.#patterns.set(template, patterns);
  }
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

const AT_ONCE: Pick<TaskScheduler, 'each'> = {
  each: async (items, visit) => {
    for (const item of items) visit(item);
  },
};

/** The list that pages of MCP Apps are in, too. */
const RELATED: Partial<Record<ListField, ListField>> = { tools: 'resources', resources: 'tools' };

/** The form of one expression of a URI template. Source: RFC 6570 section 2.2. */
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

// The URIs of an aggregate: the shown form of a resource's URI, and the target of a URI. It reads the lists of resources, of URI
// templates, of tools with pages and of skills; learned-uris.ts has what they say. Source: ADR 234.

import type { JsonObject } from '../../../domain/json/json.ts';
import type { Client, Owner } from '../../../domain/mcp/client.ts';
import type { ListField } from '../../../domain/mcp/mcp.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import { eachInGroups } from '../../../domain/time/task-groups.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import { isTooLong } from '../../client-bounds.ts';
import { KEY_FIELDS } from '../lists/acceptable-items.ts';
import type { AggregateLists, GatheredList } from '../lists/aggregate-lists.ts';
import { composedUri, isOfSkill, partsOfComposed, type ResourceTarget } from './composed-uris.ts';
import { type FoundUris, LearnedUris, type LearnedUrisDeps } from './learned-uris.ts';
import { appPageOf, isPage, withPage } from './mcp-apps.ts';

const MAX_READERS = 10_000;
/** The most times that a URI is composed, because another template lists one that is like the composed one. */
const MAX_COMPOSED = 3;
/** The extension of skills. */
export const SKILLS = 'skills';

interface ResourceTargetsDeps extends LearnedUrisDeps {
  readonly lists: Pick<AggregateLists, 'offers' | 'announces' | 'gather'>;
  /** The templates of a caller, in their order. */
  readonly templates: (owner: Owner) => readonly string[];
  /** False for a resource that is not served. Default: all are. */
  readonly mayRead?: (template: string, uri: string) => boolean;
  /** False for a template of which this caller gets nothing, though `templates` has it. URIs are shown to all callers alike. */
  readonly mayUse?: (owner: Owner, template: string) => boolean;
}

/** Remembers the lists of all callers; each answer respects the permissions of its caller. */
export class ResourceTargets {
  readonly #deps: ResourceTargetsDeps;
  /** Ids of the callers for which the resources of the aggregate were read. */
  readonly #readers = new LruMap<true>(MAX_READERS);
  readonly #learned: LearnedUris;

  constructor(deps: ResourceTargetsDeps) {
    this.#deps = deps;
    this.#learned = new LearnedUris(deps);
  }

  /** A number that changes when a template was found to have a URI, or not to have it any more. */
  get version(): number {
    return this.#learned.version;
  }

  /** False when no URI was ever found at two templates. */
  get hasShared(): boolean {
    return this.#learned.hasShared;
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
    return this.#learned.learnSkills(found);
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
      this.#learned.patternsOf(template, own).length > 0 &&
      this.isServed(template, own) &&
      this.#offers(template, owner);
    const fitsAsShown = (template: string, own: string) =>
      fits(template, own) &&
      this.#learned.patternsOf(template, own).some((each) => this.shown(template, each, owner) !== each);
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
    if (!this.#learned.mayBeShared(uri)) return false;
    const templates = this.#deps.templates(owner).filter((each) => this.#has(each, uri, owner));
    return templates.length > 1 && templates.includes(template);
  }

  /**
   * True when the template has the URI. A tool may also name a page that is not served: a client must not get the page of
   * another server.
   */
  #has(template: string, uri: string, owner: Owner): boolean {
    const source = this.#learned.sourceOf(uri, template);
    if (source === undefined || (source !== 'pages' && !this.isServed(template, uri))) return false;
    return source === 'skills'
      ? this.#deps.lists.announces(SKILLS, template, owner)
      : this.#offers(template, owner);
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
    const hasPages = await this.#learned.learn(list, complete, isWhole);
    if (list === 'resources') this.#readers.set(owner.id, true);
    return hasPages;
  }
}

const AT_ONCE: Pick<TaskScheduler, 'each'> = {
  each: async (items, visit) => {
    for (const item of items) visit(item);
  },
};

/** The list that pages of MCP Apps are in, too. */
const RELATED: Partial<Record<ListField, ListField>> = { tools: 'resources', resources: 'tools' };

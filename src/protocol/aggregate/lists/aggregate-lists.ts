// Gathers the lists of the templates of which a caller uses an aggregate.

import { filter, firstValueFrom, type Observable, Subject, type Subscription } from 'rxjs';
import { type ExchangeRequest, isSourcedAnswer } from '../../../domain/calls/exchange.ts';
import { noHealthyInstance } from '../../../domain/errors/backend-errors.ts';
import { hasCode } from '../../../domain/errors/errors.ts';
import { canonicalText, type JsonObject } from '../../../domain/json/json.ts';
import { LIMITS } from '../../../domain/limits.ts';
import type { ListReader, Reading, ReadList } from '../../../domain/lists/list-reader.ts';
import { allowedTools } from '../../../domain/lists/listed-tools.ts';
import type { Client, Owner } from '../../../domain/mcp/client.ts';
import { type JsonRpcError, RPC } from '../../../domain/mcp/jsonrpc.ts';
import { type ListChange, type ListField, META, type WithheldItem } from '../../../domain/mcp/mcp.ts';
import { FairLruMap } from '../../../domain/memory/fair-lru-map.ts';
import { LruMap } from '../../../domain/memory/lru-map.ts';
import { settlesWithin } from '../../../domain/time/clock.ts';
import { inGroups } from '../../../domain/time/task-groups.ts';
import type { TaskScheduler, Timing } from '../../../domain/time/task-scheduler.ts';
import { shortKey } from '../../client-bounds.ts';
import type { Backends } from '../../endpoint-backends.ts';
import { clientMessageOf } from '../../rpc.ts';
import { itemCheck } from './acceptable-items.ts';
import type { StoredLists } from './stored-lists.ts';

/** The longest wait for one template, from when its list is requested: for its first list, and for another one. */
const FIRST_WAIT_MS = 10_000;
const WAIT_MS = 1_000;
/** The most first lists whose time of request is remembered. A forgotten one is waited for again. */
const MAX_AWAITED = 10_000;
/** Memory of one list of an aggregate, as values. */
const MAX_AGGREGATE_BYTES = 128 * 1024 * 1024;
/** Memory of the lists that are remembered. */
const MAX_REMEMBERED_BYTES = 64 * 1024 * 1024;

export interface GatheredList {
  readonly template: string;
  readonly items: readonly JsonObject[];
  /** Memory of the items: see memoryOf. Default: 0. */
  readonly bytes?: number;
  /** The reason why the items are missing, as a sentence for clients. */
  readonly missing?: string | undefined;
  /** Time since the items were read, if they could not be read now. */
  readonly staleMs?: number | undefined;
  /** The reason why items after these are missing, as a clause. */
  readonly cut?: string | undefined;
}

/**
 * True for lists of the same templates with the same items. Items alone say nothing: equal lists of several
 * templates share them.
 */
export function isSameInput(one: readonly GatheredList[], other: readonly GatheredList[]): boolean {
  return (
    one.length === other.length &&
    one.every(({ template, items }, at) => template === other[at]?.template && items === other[at]?.items)
  );
}

export interface AggregateListsDeps extends Timing {
  readonly backendsOf: (template: string) => Backends;
  /** True for a template with instances. Default: all have some. */
  readonly hasInstances?: ((template: string) => boolean) | undefined;
  /** Hot: of all templates. */
  readonly listChanges$: Observable<ListChange>;
  /** Hot: a template of which an instance became healthy. Default: none does. */
  readonly recovered$?: Observable<string> | undefined;
  /** Called for each list of a template that was read. Default: none. */
  readonly onListed?:
    | ((list: ListField, template: string, withheld: readonly WithheldItem[]) => void)
    | undefined;
  readonly reader: ListReader;
  /** Lists that outlive the gateway. Default: none do. */
  readonly kept?: StoredLists | undefined;
}

type FoundList = Omit<GatheredList, 'template'> & Pick<Crawled, 'bytes'>;

const NOTHING: FoundList = { items: [], bytes: 0 };

/**
 * The lists of the templates of an aggregate, and the reads that are under way. A template whose first list is read may
 * start meanwhile. For one that does not answer in time its last list is used, or none, and the result says so; when it
 * could be read later, that counts as a change. A template without an instance that offers the list is left out.
 * Source: ADR 117.
 */
export class AggregateLists {
  /** Hot: a list that was served as missing or stale can be read now, or a late answer differs from the list that was served. */
  readonly late$ = new Subject<ListChange>();
  readonly #deps: AggregateListsDeps;
  readonly #scheduler: TaskScheduler;
  readonly #reader: ListReader;
  readonly #remembered = new FairLruMap<Crawled>(MAX_REMEMBERED_BYTES);
  /** The lists that are being read: each ends within its wait, though its reading may take longer. */
  readonly #crawls = new Map<string, { readonly crawl: Crawl; readonly found: Promise<FoundList> }>();
  /**
   * The starts that are waited for, by template and owner. Places for waits are few: all clients of a gateway without
   * accounts are one owner, and each asks for several lists.
   */
  readonly #starts = new Map<string, Promise<void>>();
  /** The time at which a start or a first list was first requested; until it came. */
  readonly #firstAtMs = new LruMap<number>(MAX_AWAITED);
  /** The lists that were served without a template, or with its old list, because it did not answer; by template. */
  readonly #incomplete = new LruMap<Set<ListField>>(LIMITS.templates);
  #watch: Subscription | undefined;

  constructor(deps: AggregateListsDeps) {
    this.#deps = deps;
    this.#scheduler = deps.scheduler;
    this.#reader = deps.reader;
  }

  /**
   * The lists of these templates, in their order, within MAX_AGGREGATE_BYTES together. Takes about a second, or
   * FIRST_WAIT_MS when the list of a template was never read before. Never rejects.
   */
  async gather(list: ListField, templates: readonly string[], client: Client): Promise<GatheredList[]> {
    const gathered = new Map<string, FoundList>();
    await this.#scheduler.each(inGroups(templates, STARTED_TOGETHER), (group) =>
      Promise.all(
        group.map(async (template) => {
          const deleted = (thrown: unknown): FoundList => {
            if (!hasCode(thrown, 'TEMPLATE_NOT_FOUND')) throw thrown;
            return { ...NOTHING, missing: clientMessageOf(thrown) };
          };
          gathered.set(template, await this.#listed(list, template, client).catch(deleted));
        }),
      ),
    );
    let total = 0;
    const lists = templates.flatMap((template): GatheredList[] => {
      const found = gathered.get(template) ?? NOTHING;
      if (found === NOTHING) return [];
      total += found.bytes;
      if (total > MAX_AGGREGATE_BYTES)
        return [{ template, ...NOTHING, missing: 'All lists together are too large.' }];
      return [{ template, ...found }];
    });
    const { tools } = client.owner;
    if (list !== 'tools' || tools === undefined) return lists;
    const allowed = lists.map(async (each) => ({
      ...each,
      items: await allowedTools(each.template, tools, each.items, this.#scheduler),
    }));
    return Promise.all(allowed);
  }

  /**
   * Waits as `gather` does for those of the templates that are starting for the first time: what they offer is not known yet.
   * Undefined when there are none. Never rejects.
   */
  untilStarted(templates: readonly string[], owner: Owner): Promise<void> | undefined {
    const { backendsOf } = this.#deps;
    const unknown = templates.filter((template) => backendsOf(template).handshakes(owner).length === 0);
    if (unknown.length === 0) return undefined;
    const wait = (template: string) =>
      this.#untilConnected(template, owner, FIRST_WAIT_MS).catch(() => undefined); // it was deleted meanwhile
    return this.#scheduler.each(inGroups(unknown, STARTED_TOGETHER), (group) => Promise.all(group.map(wait)));
  }

  /** True when an instance of the template announces the list, or the last one that was connected did. */
  offers(list: ListField, template: string, owner: Owner): boolean {
    const capability = list === 'resourceTemplates' ? 'resources' : list;
    const handshakes = this.#deps.backendsOf(template).handshakes(owner);
    return handshakes.some(
      ({ era, capabilities }) => era === 'bare' || capabilities[capability] !== undefined,
    );
  }

  /** True when an instance of the template announces an extension whose last segment is this one. */
  announces(extension: string, template: string, owner: Owner): boolean {
    const handshakes = this.#deps.backendsOf(template).handshakes(owner);
    return handshakes.some(({ capabilities: { extensions } }) =>
      Object.keys(Object(extensions)).some((id) => id.slice(id.lastIndexOf('/') + 1) === extension),
    );
  }

  /** True when an instance of the template has tasks: those of the legacy era, or those of the extension. */
  hasTasks(template: string, owner: Owner): boolean {
    const handshakes = this.#deps.backendsOf(template).handshakes(owner);
    const isLegacy = handshakes.some(({ capabilities }) => capabilities.tasks !== undefined);
    return isLegacy || this.announces('tasks', template, owner);
  }

  async #listed(list: ListField, template: string, client: Client): Promise<FoundList> {
    const { owner, profile } = client;
    const { backendsOf, hasInstances, kept } = this.#deps;
    const backends = backendsOf(template);
    if (backends.handshakes(owner).length === 0) {
      if (hasInstances?.(template) === false) return NOTHING;
      const last = await kept?.find(template, list, profile);
      await this.#untilConnected(
        template,
        owner,
        last === undefined ? this.#restMs(firstKeyOf(list, template, client)) : WAIT_MS,
      );
      if (backends.handshakes(owner).length === 0) {
        if (last !== undefined) return this.#incompleteList(list, template, { ...last, staleMs: last.ageMs });
        const missing = clientMessageOf(backends.noHealthyError?.() ?? noHealthyInstance(template));
        return this.#incompleteList(list, template, { ...NOTHING, missing });
      }
    }
    this.#firstAtMs.delete(startKeyOf(template, owner));
    if (!this.offers(list, template, owner)) return NOTHING;
    // When the last instance was removed, the next server may be another one.
    const servers = new Set(backends.handshakes(owner).map(({ serverInfo }) => serverInfo.name));
    const digest = shortKey(canonicalText(profile.capabilities), ...servers);
    const key = `${list} ${template} ${owner.id} ${digest}`;
    return this.#crawls.get(key)?.found ?? this.#begin(key, list, template, client);
  }

  /** Waits while the template is starting for the first time, at most so long, and as #restMs says for all requests of its owner. */
  async #untilConnected(template: string, owner: Owner, mostMs: number): Promise<void> {
    const key = startKeyOf(template, owner);
    const started = this.#starts.get(key) ?? this.#deps.backendsOf(template).untilStarted?.(owner);
    if (started === undefined) return;
    const forget = () => this.#starts.delete(key);
    if (!this.#starts.has(key)) started.then(forget, forget);
    this.#starts.set(key, started);
    await settlesWithin(started, Math.min(this.#restMs(key), mostMs), this.#deps.clock);
  }

  /**
   * The rest of FIRST_WAIT_MS since the first request of this key; later requests do not wait as long again. What came is
   * forgotten: a template that is registered again starts for the first time.
   */
  #restMs(key: string): number {
    const now = this.#deps.clock.now();
    const firstAtMs = this.#firstAtMs.get(key) ?? now;
    this.#firstAtMs.set(key, firstAtMs);
    const restMs = firstAtMs + FIRST_WAIT_MS - now;
    return restMs > 0 ? restMs : WAIT_MS;
  }

  /** Announces the list as changed once the template answers again. */
  #incompleteList(list: ListField, template: string, found: FoundList): FoundList {
    const lists = this.#incomplete.get(template) ?? new Set();
    this.#incomplete.set(template, lists.add(list));
    this.#watch ??= this.#deps.recovered$?.subscribe((recovered) => this.#announce(recovered));
    return found;
  }

  #announce(template: string): void {
    const lists = this.#incomplete.get(template) ?? [];
    this.#incomplete.delete(template);
    for (const list of lists) this.late$.next({ template, list });
    if (this.#incomplete.size > 0) return;
    this.#watch?.unsubscribe();
    this.#watch = undefined;
  }

  #begin(key: string, list: ListField, template: string, client: Client): Promise<FoundList> {
    const last = this.#remembered.get(key);
    const crawl: Crawl = { key, list, template, client, last };
    const reading = this.#read(crawl);
    const waitMs = last === undefined ? this.#restMs(firstKeyOf(list, template, client)) : WAIT_MS;
    const found = settlesWithin(reading, waitMs, this.#deps.clock).then((isInTime) => {
      if (isInTime) return reading.then((listed) => this.#foundIn(crawl, listed));
      void reading.then((late) => this.#announceLate(crawl, late));
      return this.#lastFound(crawl, 'It has not answered yet.');
    });
    this.#crawls.set(key, { crawl, found });
    return found;
  }

  /** Reads the list and remembers it. A text says why it could not be read. Never rejects. */
  async #read(crawl: Crawl): Promise<Crawled | string> {
    const { key, list, template, client } = crawl;
    const { listChanges$, onListed, kept } = this.#deps;
    const isCurrent = () => this.#crawls.get(key)?.crawl === crawl;
    const remove = () => isCurrent() && this.#crawls.delete(key);
    // When the list changes before it was read, later requests must not get the old list.
    const announced = list === 'resourceTemplates' ? 'resources' : list;
    const watch = listChanges$.subscribe(
      (change) => change.template === template && change.list === announced && remove(),
    );
    try {
      const listed = await this.#crawl(list, template, client);
      if (typeof listed === 'string') return listed;
      this.#firstAtMs.delete(firstKeyOf(list, template, client));
      onListed?.(list, template, listed.withheld);
      // A list that was requested before a change is not stored after it.
      if (isCurrent() && listed.staleMs === undefined) {
        this.#remembered.set(client.owner.id, key, listed);
        kept?.keep(template, list, client.profile, listed.items);
      }
      return listed;
    } catch (thrown) {
      return clientMessageOf(thrown);
    } finally {
      watch.unsubscribe();
      remove();
    }
  }

  #foundIn(crawl: Crawl, listed: Crawled | string): FoundList | Promise<FoundList> {
    if (typeof listed === 'string') return this.#lastFound(crawl, listed);
    return listed.staleMs === undefined ? listed : this.#incompleteList(crawl.list, crawl.template, listed);
  }

  /** The list as it was read last, here or before a restart; else none, for this reason. */
  async #lastFound({ list, template, client, last }: Crawl, reason: string): Promise<FoundList> {
    const { kept, clock } = this.#deps;
    const stale = async () => {
      if (last !== undefined) return { ...last, staleMs: clock.now() - last.readAtMs };
      const found = await kept?.find(template, list, client.profile);
      return found === undefined ? { ...NOTHING, missing: reason } : { ...found, staleMs: found.ageMs };
    };
    return this.#incompleteList(list, template, await stale());
  }

  /** Announces a late list that differs from the last one. */
  #announceLate({ key, list, template, last }: Crawl, late: Crawled | string): void {
    if (typeof late === 'string' || this.#remembered.get(key) !== late) return;
    if (last === undefined || JSON.stringify(last.items) !== JSON.stringify(late.items))
      this.late$.next({ template, list });
  }

  /** Reads all pages; none of a list that the server does not offer. A text is its refusal. Throws when no instance answers. */
  async #crawl(list: ListField, template: string, client: Client): Promise<Crawled | string> {
    const backends = this.#deps.backendsOf(template);
    let instanceId: string | undefined;
    let staleMs: number | undefined;
    let isRefused = false;
    const ask = async (request: ExchangeRequest) => {
      const events$ = backends.exchange(request, { ...client, instanceId });
      const answer = await firstValueFrom(events$.pipe(filter(isSourcedAnswer)));
      if (answer.event.kind === 'error') return answer;
      instanceId = answer.instanceId;
      if (answer.staleMs !== undefined) staleMs = Math.max(staleMs ?? 0, answer.staleMs);
      return answer;
    };
    const refused = ({ code }: JsonRpcError) => {
      isRefused = code !== RPC.methodNotFound;
      return instanceId === undefined ? undefined : 'a page was refused';
    };
    const reading: Reading = {
      ask,
      refused,
      ownerId: client.owner.id,
      params: declarationsOf(client),
      formOf: ({ text }) => (BEYOND_DOUBLE.test(text) ? 'value' : 'exactValue'),
      maxBytes: MAX_LIST_BYTES,
      check: itemCheck(list, this.#scheduler),
    };
    const read = await this.#reader.read(list, reading, (found) => found);
    if (read.items.length === 0 && isRefused) return REFUSED;
    return { ...read, readAtMs: this.#deps.clock.now(), staleMs };
  }
}

function startKeyOf(template: string, { id }: Owner): string {
  return `${template} ${id}`;
}

/** The key of a first list. A client with other capabilities may get a dedicated process, which starts then. */
function firstKeyOf(list: ListField, template: string, { owner, profile }: Client): string {
  return `${list} ${template} ${owner.id} ${shortKey(canonicalText(profile.capabilities))}`;
}

const REFUSED = 'It answered the request for its list with an error.';

/** Bytes of JSON of one list of one template. The page that exceeds it is left out, and ends the list. */
const MAX_LIST_BYTES = 4 * 1024 * 1024;

/** One reading of a list. `last`: the list as it was read before. */
interface Crawl {
  readonly key: string;
  readonly list: ListField;
  readonly template: string;
  readonly client: Client;
  readonly last: Crawled | undefined;
}

/** A list of one template. */
interface Crawled extends ReadList {
  readonly readAtMs: number;
  /** Age of its oldest page that is not an answer of now. */
  readonly staleMs?: number | undefined;
}

/** The capabilities that a list request carries: a modern server lists by them. A legacy one does not get them with a request. */
function declarationsOf({ profile: { capabilities } }: Client): JsonObject | undefined {
  if (Object.keys(capabilities).length === 0) return undefined;
  return { _meta: { [META.clientCapabilities]: capabilities } };
}

/** Numbers that are infinite for clients, which do not accept them: they become null. */
const BEYOND_DOUBLE = /\d[eE]\+?\d{3}/;

/**
 * The number of templates whose lists are looked for in one task of the scheduler: 2,000 requests in one turn would be 200 ms.
 */
const STARTED_TOGETHER = 20;

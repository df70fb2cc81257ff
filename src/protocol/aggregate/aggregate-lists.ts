// Gathers the lists of all templates that a caller may use. For a template that does not answer in time its last list is used, or
// an empty one; a late answer that differs counts as a change. A template without an instance that offers the list is left out.

import { filter, firstValueFrom, Subject, timer } from 'rxjs';
import { type ExchangeRequest, isFinalAnswer } from '../../domain/exchange.ts';
import { canonicalText, isJsonObject, type JsonObject, type JsonText } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LIST_METHODS, type ListChange, type ListField } from '../../domain/mcp.ts';
import { ListMemory } from '../cached-lists.ts';
import { shortKey } from '../client-bounds.ts';
import { DEEPEST } from '../client-message.ts';
import type { Backends, Client, Owner } from '../ports.ts';

/** Longest wait for one template, from the start of its crawl. */
const CRAWL_MS = 1_000;
/** Bytes of JSON of one list of all templates. */
const MOST_BYTES = LIMITS.backendMessageBytes;

interface ListItems {
  readonly template: string;
  readonly items: readonly JsonObject[];
}

interface Crawl {
  readonly listed: Promise<Crawled>;
  readonly late: Promise<void>;
  /** A request was answered without it. */
  isMissed: boolean;
}

const NOTHING: Crawled = { items: [], bytes: 0 };

export class AggregateLists {
  /** Hot: a late answer differs from the list that was served. */
  readonly late$ = new Subject<ListChange>();
  readonly #backendsOf: (template: string) => Backends;
  readonly #remembered = new ListMemory<Crawled>();
  readonly #crawls = new Map<string, Crawl>();

  constructor(backendsOf: (template: string) => Backends) {
    this.#backendsOf = backendsOf;
  }

  /** The items of each template, in the order of `templates`, within MOST_BYTES together and about a second. Never rejects. */
  async gather(list: ListField, templates: readonly string[], client: Client): Promise<ListItems[]> {
    const gathered = await Promise.all(
      templates.map((template) => this.#withTimeout(list, template, client)),
    );
    let bytes = 0;
    return gathered.map((listed, index) => {
      bytes += listed.bytes;
      return { template: templates[index] ?? '', items: bytes > MOST_BYTES ? [] : listed.items };
    });
  }

  /** True when an instance of the template announces the list, or the last one that was connected did. */
  offers(list: ListField, template: string, owner: Owner): boolean {
    const capability = list === 'resourceTemplates' ? 'resources' : list;
    const peers = this.#backendsOf(template).peers(owner);
    return peers.some(({ era, capabilities }) => era === 'bare' || capabilities[capability] !== undefined);
  }

  async #withTimeout(list: ListField, template: string, client: Client): Promise<Crawled> {
    const { owner, profile } = client;
    if (!this.offers(list, template, owner)) return NOTHING;
    const key = `${list} ${template} ${owner.id} ${shortKey(canonicalText(profile.capabilities))}`;
    const crawl = this.#crawls.get(key) ?? this.#begin(key, list, template, client);
    const lastList = crawl.late.then(() => {
      crawl.isMissed = true;
      return this.#lastList(key);
    });
    return Promise.race([crawl.listed, lastList]);
  }

  #begin(key: string, list: ListField, template: string, client: Client): Crawl {
    const backends = this.#backendsOf(template);
    const remove = () => {
      if (this.#crawls.get(key) === crawl) this.#crawls.delete(key);
    };
    const store = (listed: Crawled) => {
      // A list that was requested before a change is not stored after it.
      if (this.#crawls.get(key) !== crawl) return listed;
      const before = this.#lastList(key);
      this.#remembered.set(key, listed);
      if (crawl.isMissed && JSON.stringify(before.items) !== JSON.stringify(listed.items))
        this.late$.next({ template, list });
      return listed;
    };
    const { promise: late, resolve } = Promise.withResolvers<void>();
    // When the list changes before it was read, later requests must not get the old list.
    const announced = list === 'resourceTemplates' ? 'resources' : list;
    const watch = backends.listChanged$.subscribe((changed) => {
      if (changed === list || changed === announced) remove();
    });
    watch.add(timer(CRAWL_MS).subscribe(() => resolve()));
    const listed = crawlList(list, backends, client)
      .then(store, () => this.#lastList(key))
      .finally(() => {
        watch.unsubscribe();
        remove();
      });
    const crawl: Crawl = { listed, late, isMissed: false };
    this.#crawls.set(key, crawl);
    return crawl;
  }

  #lastList(key: string): Crawled {
    return this.#remembered.get(key) ?? NOTHING;
  }
}

// Reads one list of one template, and accepts only items that can be serialized: a bad item of one backend must not spoil the
// list of all.

/** Bytes of JSON of one list of one template. The page that exceeds it is left out, and ends the list. */
const MOST_LIST_BYTES = 4 * 1024 * 1024;

interface Crawled {
  readonly items: readonly JsonObject[];
  readonly bytes: number;
}

/** Reads all pages. Rejects when no instance answers. An error answer means that the list is not offered. */
async function crawlList(list: ListField, backends: Backends, client: Client): Promise<Crawled> {
  const items: JsonObject[] = [];
  let bytes = 0;
  let request: ExchangeRequest = { method: LIST_METHODS[list] };
  let instanceId: string | undefined;
  for (let pages = 0; pages < LIMITS.listPages && items.length < LIMITS.listItems; pages += 1) {
    const { event, ...from } = await firstValueFrom(
      backends.exchange(request, { ...client, instanceId }).pipe(filter(isFinalAnswer)),
    );
    if (event.kind !== 'result') break;
    const pageBytes = event.result.bytes.byteLength;
    if (bytes + pageBytes > MOST_LIST_BYTES) break;
    bytes += pageBytes;
    for (const item of itemsIn(event.result, list)) items.push(item);
    const { value } = event.result;
    if (!isJsonObject(value) || typeof value.nextCursor !== 'string') break;
    request = { method: LIST_METHODS[list], params: { cursor: value.nextCursor } };
    instanceId = from.instanceId;
  }
  return { items, bytes };
}

function itemsIn(page: JsonText, list: ListField): readonly JsonObject[] {
  const found = isJsonObject(page.value) ? page.value[list] : undefined;
  return Array.isArray(found) ? found.filter(isAcceptable) : [];
}

/** An item that is nested too deeply cannot be serialized again. */
function isAcceptable(item: unknown): item is JsonObject {
  return isJsonObject(item) && !isDeeper(item, DEEPEST);
}

/** The recursion is bounded by `levels`. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((field) => isDeeper(field, levels - 1));
}

// Gathers the lists of all templates that a caller may use. For a template that does not answer in time its last list is used, or
// none; a late answer that differs counts as a change. cached-lists.ts shares a reading between callers.

import { filter, firstValueFrom, Subject } from 'rxjs';
import { settlesWithin } from '../../domain/clock.ts';
import { type ExchangeRequest, isFinalAnswer } from '../../domain/exchange.ts';
import { canonicalText, isDeeper, isJsonObject, type JsonObject, type JsonText } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LIST_METHODS, type ListChange, type ListField } from '../../domain/mcp.ts';
import { ListMemory } from '../cached-lists.ts';
import { shortKey } from '../client-bounds.ts';
import type { Backends, Client, Owner } from '../ports.ts';

/** Longest wait for one template, from when its list is requested. */
const CRAWL_MS = 1_000;
/** Bytes of JSON of one list of all templates. */
const MOST_BYTES = LIMITS.backendMessageBytes;

interface ListItems {
  readonly template: string;
  readonly items: readonly JsonObject[];
}

const NOTHING: Crawled = { items: [], bytes: 0, order: 0 };

export class AggregateLists {
  /** Hot: a late answer differs from the list that was served. */
  readonly late$ = new Subject<ListChange>();
  readonly #backendsOf: (template: string) => Backends;
  readonly #remembered = new ListMemory<Crawled>();
  #readings = 0;

  constructor(backendsOf: (template: string) => Backends) {
    this.#backendsOf = backendsOf;
  }

  /** The known lists of these templates, in their order, within MOST_BYTES together and about a second. Never rejects. */
  async gather(list: ListField, templates: readonly string[], client: Client): Promise<ListItems[]> {
    const gathered = await Promise.all(templates.map((template) => this.#listed(list, template, client)));
    let total = 0;
    return gathered.flatMap(({ items, bytes }, index) => {
      total += bytes;
      return items === NOTHING.items || total > MOST_BYTES ? [] : { template: templates[index] ?? '', items };
    });
  }

  /** True when an instance of the template announces the list, or the last one that was connected did. */
  offers(list: ListField, template: string, owner: Owner): boolean {
    const capability = list === 'resourceTemplates' ? 'resources' : list;
    const peers = this.#backendsOf(template).peers(owner);
    return peers.some(({ era, capabilities }) => era === 'bare' || capabilities[capability] !== undefined);
  }

  async #listed(list: ListField, template: string, client: Client): Promise<Crawled> {
    const { owner, profile } = client;
    if (!this.offers(list, template, owner)) return NOTHING;
    // After the last instance was removed, the next server may be another one.
    const servers = new Set(
      this.#backendsOf(template)
        .peers(owner)
        .map(({ serverInfo }) => serverInfo.name),
    );
    const digest = shortKey(canonicalText(profile.capabilities), ...servers);
    const key = `${list} ${template} ${owner.id} ${digest}`;
    const last = this.#remembered.get(key) ?? NOTHING;
    this.#readings += 1;
    const order = this.#readings;
    let isLate = false;
    const store = (read: Omit<Crawled, 'order'>): Crawled => {
      const listed = { ...read, order };
      const stored = this.#remembered.get(key) ?? NOTHING;
      if (stored.order > order) return listed; // it was requested before the stored one
      this.#remembered.set(key, listed);
      if (isLate && JSON.stringify(stored.items) !== JSON.stringify(read.items))
        this.late$.next({ template, list });
      return listed;
    };
    const reading = crawlList(list, this.#backendsOf(template), client).then(store, () => last);
    isLate = !(await settlesWithin(reading, CRAWL_MS));
    return isLate ? last : reading;
  }
}

// Reads one list of one template, and accepts only items that can be serialized: a bad item of one backend must not spoil the
// list of all.

/** Bytes of JSON of one list of one template. The page that exceeds it is left out, and ends the list. */
const MOST_LIST_BYTES = 4 * 1024 * 1024;

interface Crawled {
  readonly items: readonly JsonObject[];
  readonly bytes: number;
  /** Number of the reading. */
  readonly order: number;
}

/** Reads all pages. Rejects when no instance answers. An error answer means that the list is not offered. */
async function crawlList(
  list: ListField,
  backends: Backends,
  client: Client,
): Promise<Omit<Crawled, 'order'>> {
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
  if (!Array.isArray(found)) return [];
  // An item that is nested too deeply cannot be serialized again.
  return found.filter(isJsonObject).filter((item) => !isDeeper(item, LIMITS.nestingDepth));
}

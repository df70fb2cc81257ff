// Gathers the lists of all templates that a caller may use. For a template that does not answer in time its last list is used, or
// none; a late answer that differs counts as a change. A template without an instance that offers the list is left out.

import { filter, firstValueFrom, type Observable, Subject } from 'rxjs';
import { settlesWithin } from '../../domain/clock.ts';
import { type ExchangeRequest, isFinalAnswer, parsedResult } from '../../domain/exchange.ts';
import { memoryOf } from '../../domain/held-bytes.ts';
import { canonicalText, isDeeper, isJsonObject, type JsonObject, valuesIn } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { PageWatch } from '../../domain/list-pages.ts';
import { LIST_METHODS, type ListChange, type ListField, META, type WithheldItem } from '../../domain/mcp.ts';
import { cutText } from '../../domain/text.ts';
import { ListMemory } from '../cached-lists.ts';
import { shortKey } from '../client-bounds.ts';
import type { Backends, Client, Owner } from '../ports.ts';
import { checkedItem, KEY_FIELDS } from './aggregate-items.ts';

/** Longest wait for one template, from when its list is requested. */
const CRAWL_MS = 1_000;
/** Memory of one list of all templates, as values. */
const MOST_BYTES = 128 * 1024 * 1024;
/** Memory of the lists that are remembered. */
const MOST_REMEMBERED_BYTES = 64 * 1024 * 1024;

interface ListItems {
  readonly template: string;
  readonly items: readonly JsonObject[];
}

export interface AggregateListsOptions {
  readonly backendsOf: (template: string) => Backends;
  /** Of all templates. */
  readonly listChanges$: Observable<ListChange>;
  /** Called for each list of a template that was read. Default: none. */
  readonly onListed?:
    | ((list: ListField, template: string, withheld: readonly WithheldItem[]) => void)
    | undefined;
}

const NOTHING: Crawled = { items: [], withheld: [], bytes: 0 };

export class AggregateLists {
  /** Hot: a late answer differs from the list that was served. */
  readonly late$ = new Subject<ListChange>();
  readonly #options: AggregateListsOptions;
  readonly #remembered = new ListMemory<Crawled>(MOST_REMEMBERED_BYTES);
  /** The lists that are being read: each ends within CRAWL_MS, though its reading may take longer. */
  readonly #crawls = new Map<string, Promise<Crawled>>();

  constructor(options: AggregateListsOptions) {
    this.#options = options;
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
    const peers = this.#options.backendsOf(template).peers(owner);
    return peers.some(({ era, capabilities }) => era === 'bare' || capabilities[capability] !== undefined);
  }

  async #listed(list: ListField, template: string, client: Client): Promise<Crawled> {
    const { owner, profile } = client;
    if (!this.offers(list, template, owner)) return NOTHING;
    // After the last instance was removed, the next server may be another one.
    const servers = new Set(
      this.#options
        .backendsOf(template)
        .peers(owner)
        .map(({ serverInfo }) => serverInfo.name),
    );
    const digest = shortKey(canonicalText(profile.capabilities), ...servers);
    const key = `${list} ${template} ${owner.id} ${digest}`;
    return this.#crawls.get(key) ?? this.#begin(key, list, template, client);
  }

  #begin(key: string, list: ListField, template: string, client: Client): Promise<Crawled> {
    const lastList = this.#remembered.get(key) ?? NOTHING;
    const isCurrent = () => this.#crawls.get(key) === crawl;
    const remove = () => isCurrent() && this.#crawls.delete(key);
    const store = (listed: Crawled) => {
      this.#options.onListed?.(list, template, listed.withheld);
      if (isCurrent()) this.#remembered.set(key, listed); // one that was requested before a change is not stored after it
      return listed;
    };
    // When the list changes before it was read, later requests must not get the old list.
    const announced = list === 'resourceTemplates' ? 'resources' : list;
    const watch = this.#options.listChanges$.subscribe(
      (change) => change.template === template && change.list === announced && remove(),
    );
    const reading = crawlList(list, this.#options.backendsOf(template), client)
      .then(store, () => lastList)
      .finally(() => {
        watch.unsubscribe();
        remove();
      });
    const compare = (late: Crawled) => {
      const isStored = this.#remembered.get(key) === late;
      if (isStored && JSON.stringify(lastList.items) !== JSON.stringify(late.items))
        this.late$.next({ template, list });
    };
    const crawl = settlesWithin(reading, CRAWL_MS).then((isInTime) => {
      if (isInTime) return reading;
      void reading.then(compare);
      return lastList;
    });
    this.#crawls.set(key, crawl);
    return crawl;
  }
}

// Reads one list of one template, and checks its items: a bad item of one backend must not spoil the list of all.

/** Bytes of JSON of one list of one template. The page that exceeds it is left out, and ends the list. */
const MOST_LIST_BYTES = 4 * 1024 * 1024;

interface Crawled {
  readonly items: readonly JsonObject[];
  readonly withheld: readonly WithheldItem[];
  /** Memory of the items: see memoryOf. */
  readonly bytes: number;
}

/** Reads all pages. Rejects when no instance answers. An error answer means that the list is not offered. */
async function crawlList(list: ListField, backends: Backends, client: Client): Promise<Crawled> {
  const items: JsonObject[] = [];
  const withheld: WithheldItem[] = [];
  const watch = new PageWatch();
  let [jsonBytes, values] = [0, 0];
  const declared = declarationsOf(client);
  let request: ExchangeRequest = { method: LIST_METHODS[list], ...(declared && { params: declared }) };
  let instanceId: string | undefined;
  for (let pages = 0; pages < LIMITS.listPages && items.length < LIMITS.listItems; pages += 1) {
    const { event, ...from } = await firstValueFrom(
      backends.exchange(request, { ...client, instanceId }).pipe(filter(isFinalAnswer)),
    );
    if (event.kind !== 'result') break;
    const pageBytes = event.result.bytes.byteLength;
    if (jsonBytes + pageBytes > MOST_LIST_BYTES) break;
    jsonBytes += pageBytes;
    const value = parsedResult(event.result, BEYOND_DOUBLE.test(event.result.text) ? 'value' : 'exactValue');
    values += valuesIn(value, LIMITS.parsedValues);
    if (values > LIMITS.parsedValues) break;
    const page: JsonObject[] = [];
    takeItems(list, value, page, withheld);
    for (const item of watch.newOn(page)) items.push(item);
    if (!isJsonObject(value) || typeof value.nextCursor !== 'string') break;
    if (watch.endAt(value.nextCursor) !== undefined) break;
    request = { method: LIST_METHODS[list], params: { ...declared, cursor: value.nextCursor } };
    instanceId = from.instanceId;
  }
  return { items, withheld, bytes: memoryOf(values, jsonBytes) };
}

/** A modern server lists what it has for a client with these capabilities. A legacy one does not get them with the request. */
function declarationsOf({ profile: { capabilities } }: Client): JsonObject | undefined {
  if (Object.keys(capabilities).length === 0) return undefined;
  return { _meta: { [META.clientCapabilities]: capabilities } };
}

/** Numbers that are infinite for clients, which do not accept them: they become null. */
const BEYOND_DOUBLE = /\d[eE]\+?\d{3}/;
/** Withheld items of one list that are reported, and UTF-16 units of their names. */
const MOST_WITHHELD = 100;
const WITHHELD_NAME_UNITS = 256;

function takeItems(list: ListField, page: unknown, items: JsonObject[], withheld: WithheldItem[]): void {
  const found = isJsonObject(page) ? page[list] : undefined;
  if (!Array.isArray(found)) return;
  for (const [index, listed] of found.entries()) {
    const checked = isDeeper(listed, LIMITS.nestingDepth) ? TOO_DEEP : checkedItem(list, listed);
    if ('item' in checked) items.push(checked.item);
    else if (withheld.length < MOST_WITHHELD) {
      const name = isJsonObject(listed) ? listed[KEY_FIELDS[list]] : undefined;
      const isNamed = typeof name === 'string' && name !== '';
      const shown = isNamed ? cutText(name.toWellFormed(), WITHHELD_NAME_UNITS) : `${list}[${index}]`;
      withheld.push({ list, name: shown, reason: checked.reason });
    }
  }
}

/** Such an item cannot be serialized again. */
const TOO_DEEP = { reason: `it is nested deeper than ${LIMITS.nestingDepth} levels` };

// Asks one template for all pages of one list, and takes of them only what can be handled: what one backend lists must not
// spoil what is made of the lists of all. Nothing is remembered here but which pages were looked through.

import { filter, firstValueFrom } from 'rxjs';
import { isFinalAnswer } from '../../domain/exchange.ts';
import { isJsonObject, type JsonObject, type JsonText } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LIST_METHODS, type ListField } from '../../domain/mcp.ts';
import type { Backends, Client } from '../ports.ts';
import { DEEPEST } from '../read-body.ts';

/** Bytes of JSON of one list of one template. The page that exceeds it is left out, and ends the list. */
const MOST_LIST_BYTES = 4 * 1024 * 1024;

/** A list of one template, and the bytes of JSON that its pages had. */
export interface Crawled {
  readonly items: readonly JsonObject[];
  readonly bytes: number;
}

/** Reads lists, page by page. */
export class ListCrawler {
  readonly #of: (template: string) => Backends;
  /** The sound items of pages; those that come from memory come again and again. */
  readonly #sound = new WeakMap<JsonText, readonly JsonObject[]>();

  constructor(of: (template: string) => Backends) {
    this.#of = of;
  }

  /** Rejects when there is no such template, or nobody answers. An error answer means that the list is not offered. */
  async crawl(list: ListField, template: string, client: Client): Promise<Crawled> {
    const backends = this.#of(template);
    const method = LIST_METHODS[list];
    const items: JsonObject[] = [];
    let bytes = 0;
    let page: { readonly params?: JsonObject; readonly instanceId?: string } = {};
    for (let pages = 0; pages < LIMITS.listPages && items.length < LIMITS.listItems; pages += 1) {
      const { instanceId, params } = page;
      const request = params === undefined ? { method } : { method, params };
      const { event, ...from } = await firstValueFrom(
        backends.exchange(request, { ...client, instanceId }).pipe(filter(isFinalAnswer)),
      );
      if (event.kind !== 'result') break;
      const pageBytes = event.result.bytes.byteLength;
      if (bytes + pageBytes > MOST_LIST_BYTES) break;
      bytes += pageBytes;
      for (const item of this.#itemsIn(event.result, list)) items.push(item);
      const { value } = event.result;
      if (!isJsonObject(value) || typeof value.nextCursor !== 'string') break;
      page = { params: { cursor: value.nextCursor }, instanceId: from.instanceId };
    }
    return { items, bytes };
  }

  #itemsIn(page: JsonText, list: ListField): readonly JsonObject[] {
    const known = this.#sound.get(page);
    if (known !== undefined) return known;
    const found = isJsonObject(page.value) ? page.value[list] : undefined;
    const items = Array.isArray(found) ? found.filter(isSound) : [];
    this.#sound.set(page, items);
    return items;
  }
}

/** What is nested too deeply could not be written again. */
function isSound(item: unknown): item is JsonObject {
  return isJsonObject(item) && !isDeeper(item, DEEPEST);
}

/** Recursion ends with the levels. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((field) => isDeeper(field, levels - 1));
}

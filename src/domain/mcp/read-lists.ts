// What lists of templates contain, by their pages: a list that was read before is not parsed and checked again,
// and callers share its items.

import { hash } from 'node:crypto';
import type { ExchangeRequest } from '../calls/exchange.ts';
import type { JsonObject, JsonText } from '../json/json.ts';
import { LruMap } from '../memory/lru-map.ts';
import { LIST_METHODS, type ListField } from './mcp.ts';

/** Lists that are remembered, as long as a caller or a cache has them. */
const MAX_LISTS = 10_000;

/** A page that was asked for with this cursor. */
interface ReadPage {
  readonly cursor: unknown;
  readonly digest: string;
}

/** A page, a clause that says why the list ends before it, or undefined: it is not offered. */
type PageAnswer = { readonly result: JsonText; readonly cut?: string } | string | undefined;

type Ask = (request: ExchangeRequest) => Promise<PageAnswer>;

interface ReadList<T> {
  /** The pages after the first one. */
  readonly rest: readonly { readonly cursor: string; readonly digest: string }[];
  readonly found: T;
}

/** `T`: what a list contains besides its items. */
export class ReadLists<T extends object> {
  /** By list and digest of the first page. */
  readonly #lists = new LruMap<ReadList<T> & { readonly items: WeakRef<readonly JsonObject[]> }>(MAX_LISTS);

  readonly #digests = new WeakMap<JsonText, string>();

  /** One list: `ask` requests its pages. `gather` makes what they contain, unless they are equal to those of before. */
  async read(
    list: ListField,
    params: JsonObject | undefined,
    ask: Ask,
    gather: (ask: Ask) => Promise<{ readonly items: readonly JsonObject[]; readonly found: T }>,
  ): Promise<T & { readonly items: readonly JsonObject[] }> {
    const method = LIST_METHODS[list];
    const first = await ask(params === undefined ? { method } : { method, params });
    const asked: PageAnswer[] = [first];
    const known = isPage(first) ? this.#known(list, this.#digestOf(first.result)) : undefined;
    let isKnown = known !== undefined;
    for (const { cursor, digest } of known?.rest ?? []) {
      const page = await ask({ method, params: { ...params, cursor } });
      asked.push(page);
      isKnown = isPage(page) && this.#digestOf(page.result) === digest;
      if (!isKnown) break;
    }
    if (known !== undefined && isKnown) return known.found;
    const pages: ReadPage[] = [];
    let isComplete = true;
    const { items, found } = await gather(async (request) => {
      const answer = asked.length > 0 ? asked.shift() : await ask(request);
      if (isPage(answer))
        pages.push({ cursor: request.params?.cursor, digest: this.#digestOf(answer.result) });
      else isComplete = false;
      return answer;
    });
    return { ...found, items: isComplete ? this.#keep(list, pages, items, found) : items };
  }

  /** The last list that began with this page: it is the same if the other pages are, too. */
  #known(
    list: ListField,
    firstPage: string,
  ): ReadList<T & { readonly items: readonly JsonObject[] }> | undefined {
    const known = this.#lists.get(`${list} ${firstPage}`);
    const items = known?.items.deref();
    return known === undefined || items === undefined
      ? undefined
      : { rest: known.rest, found: { ...known.found, items } };
  }

  /**
   * Keeps what these are, all pages of a list in their order. Returns the items of equal pages, which may have
   * been read meanwhile.
   */
  #keep(
    list: ListField,
    pages: readonly ReadPage[],
    items: readonly JsonObject[],
    found: T,
  ): readonly JsonObject[] {
    const [first, ...others] = pages;
    if (first === undefined) return items;
    const rest = others.map(({ cursor, digest }) => ({ cursor: String(cursor), digest }));
    const known = this.#known(list, first.digest);
    const digests = known?.rest.map(({ digest }) => digest).join();
    if (known !== undefined && digests === rest.map(({ digest }) => digest).join()) return known.found.items;
    this.#lists.set(`${list} ${first.digest}`, { rest, found, items: new WeakRef(items) });
    return items;
  }

  #digestOf(page: JsonText): string {
    const known = this.#digests.get(page);
    if (known !== undefined) return known;
    const digest = hash('sha256', page.bytes, 'base64url');
    this.#digests.set(page, digest);
    return digest;
  }
}

function isPage(answer: PageAnswer): answer is Exclude<PageAnswer, string | undefined> {
  return typeof answer === 'object' && answer.cut === undefined;
}

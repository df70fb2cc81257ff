// What lists of templates contain, by their pages: a list that was read before is not parsed and checked again, and callers share its items.

import { hash } from 'node:crypto';
import type { JsonObject, JsonText } from '../json/json.ts';
import { LruMap } from '../memory/lru-map.ts';
import type { ListField } from './mcp.ts';

/** Lists that are remembered, as long as a caller or a cache has them. */
const MAX_LISTS = 10_000;

/** A page that was asked for with this cursor. */
export interface ReadPage {
  readonly cursor: unknown;
  readonly result: JsonText;
}

interface Known<T> {
  /** The pages after the first one. */
  readonly rest: readonly { readonly cursor: string; readonly digest: string }[];
  readonly found: T;
}

/** `T`: what a list contains besides its items. */
export class ReadLists<T extends object> {
  /** By list and digest of the first page. */
  readonly #lists = new LruMap<Known<T> & { readonly items: WeakRef<readonly JsonObject[]> }>(MAX_LISTS);

  readonly #digests = new WeakMap<JsonText, string>();

  /** The last list that began with this page: it is the same if the other pages are, too. */
  find(
    list: ListField,
    firstPage: JsonText,
  ): Known<T & { readonly items: readonly JsonObject[] }> | undefined {
    const known = this.#lists.get(`${list} ${this.digestOf(firstPage)}`);
    const items = known?.items.deref();
    return known === undefined || items === undefined
      ? undefined
      : { rest: known.rest, found: { ...known.found, items } };
  }

  /** Keeps what these are, all pages of a list in their order. Returns the items of equal pages, which may have been read meanwhile. */
  keep(
    list: ListField,
    pages: readonly ReadPage[],
    items: readonly JsonObject[],
    found: T,
  ): readonly JsonObject[] {
    const [first, ...others] = pages;
    if (first === undefined) return items;
    const rest = others.map(({ cursor, result }) => ({
      cursor: String(cursor),
      digest: this.digestOf(result),
    }));
    const known = this.find(list, first.result);
    const digests = known?.rest.map(({ digest }) => digest).join();
    if (known !== undefined && digests === rest.map(({ digest }) => digest).join()) return known.found.items;
    this.#lists.set(`${list} ${this.digestOf(first.result)}`, { rest, found, items: new WeakRef(items) });
    return items;
  }

  digestOf(page: JsonText): string {
    const known = this.#digests.get(page);
    if (known !== undefined) return known;
    const digest = hash('sha256', page.bytes, 'base64url');
    this.#digests.set(page, digest);
    return digest;
  }
}

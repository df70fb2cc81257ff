// Reads a document for a page, or a list page by page: the data, the loading state, or the error. It is read
// again when one of its keys changes; the previous data stays visible meanwhile. A failed read is repeated after a sign-in.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { account } from '../account.ts';
import { get, messageOf } from '../api.ts';

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: string | undefined;
  readonly reload: () => void;
}

/**
 * `read` is called again when `keys` change; an answer to an earlier call is dropped, and its signal aborted, as after the
 * last one when the page is left.
 */
export function useLoaded<T>(read: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[]): Loaded<T> {
  const [data, setData] = useState<T | undefined>();
  const [error, setError] = useState<string | undefined>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    const left = new AbortController();
    read(left.signal).then(
      (value) => {
        if (left.signal.aborted) return;
        setData(value);
        setError(undefined);
      },
      (thrown: unknown) => {
        if (!left.signal.aborted) setError(messageOf(thrown));
      },
    );
    return () => left.abort();
  }, [...keys, round]);
  const reload = useCallback(() => setRound((value) => value + 1), []);
  useSignedIn(error, reload);
  return { data, error, reload };
}

/** Repeats a failed read after a sign-in: its session may have ended. */
export function useSignedIn(error: string | undefined, reload: () => void): void {
  useEffect(() => {
    if (error !== undefined) reload();
  }, [account.value]);
}

export interface Pages<T> extends Omit<Loaded<never>, 'data'> {
  /** The items read so far. */
  readonly items: readonly T[] | undefined;
  /** Nodes that did not answer. */
  readonly partial: readonly string[];
  /** Reads the next page; undefined after the last one. */
  readonly more: (() => void) | undefined;
  readonly isBusy: boolean;
}

const PAGE = 100;
/** The most items of one answer of the gateway. */
const MAX_PAGE = 1_000;

interface Shown<T> {
  readonly path: string;
  readonly items: readonly T[];
  readonly next: string | null;
  readonly partial: readonly string[];
}

const NO_NODES: readonly string[] = [];

/** `path` has a query; `name` is the field of the list. Another path starts over; another `key` reads the shown items again. */
export function usePages<T, Name extends string>(path: string, name: Name, key?: unknown): Pages<T> {
  const [shown, setShown] = useState<Shown<T> | undefined>();
  const [error, setError] = useState<string | undefined>();
  const [isBusy, setBusy] = useState(false);
  const round = useRef(0);
  /** The number of items that the user wants to see: the answer with some may be dropped because the list is read again. */
  const asked = useRef(0);
  const read = async (start: Shown<T>, count: number): Promise<void> => {
    round.current += 1;
    const mine = round.current;
    setBusy(true);
    let { items, next, partial } = start;
    try {
      do {
        const limit = Math.min(MAX_PAGE, Math.max(PAGE, count - items.length));
        const cursor = next === null ? '' : `&cursor=${next}`;
        const page = await get<
          Record<Name, readonly T[]> & { readonly next_cursor: string | null } & {
            readonly partial?: readonly string[];
          }
        >(`${path}&limit=${limit}${cursor}`);
        if (mine !== round.current) return;
        items = [...items, ...page[name]];
        next = page.next_cursor;
        partial = page.partial ?? NO_NODES;
      } while (next !== null && items.length < count);
      asked.current = items.length;
      setShown({ path, items, next, partial });
      setError(undefined);
    } catch (thrown) {
      if (mine !== round.current) return;
      setError(messageOf(thrown));
    }
    setBusy(false);
  };
  const isCurrent = shown?.path === path;
  const reload = (): void => {
    if (!isCurrent) asked.current = 0;
    void read({ path, items: [], next: null, partial: NO_NODES }, asked.current);
  };
  useEffect(() => {
    reload();
    return () => {
      round.current += 1;
    };
  }, [path, key]);
  useSignedIn(error, reload);
  const readMore = (start: Shown<T>): void => {
    asked.current = start.items.length + PAGE;
    void read(start, start.items.length + 1);
  };
  const more = isCurrent && shown.next !== null ? () => readMore(shown) : undefined;
  return { items: shown?.items, partial: shown?.partial ?? NO_NODES, error, reload, more, isBusy };
}

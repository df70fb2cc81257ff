// Reads lists of servers, each page once: a list whose pages were read before is not parsed and checked again, and
// callers share its items. Counts the memory of lists while they are read and answered: the bytes of pages that wait
// to be parsed count for their instance, the values of parsed ones for the caller. Source: ADR 268, 322.

import { hash } from 'node:crypto';
import type { ExchangeRequest, SourcedAnswer } from '../calls/exchange.ts';
import { ANSWERS_HOLD_TOO_MUCH, backendUnavailable } from '../errors/backend-errors.ts';
import { GatewayError, retryAfter } from '../errors/errors.ts';
import { definedFields, type JsonObject, type JsonText } from '../json/json.ts';
import type { JsonRpcError } from '../mcp/jsonrpc.ts';
import { LIST_METHODS, type ListField, type WithheldItem } from '../mcp/mcp.ts';
import { type ByteBounds, byteShares, HeldBytes, memoryOf } from '../memory/held-bytes.ts';
import { LruMap } from '../memory/lru-map.ts';
import { NO_CALLER, type UserShares } from '../memory/user-shares.ts';
import { TaskScheduler } from '../time/task-scheduler.ts';
import { gatherPages, type PageOptions } from './list-pages.ts';

/** Lists that are remembered, as long as a caller or a cache has them. */
const MAX_LISTS = 20_000;
const UNBOUNDED = { totalBytes: Number.POSITIVE_INFINITY, ownerBytes: Number.POSITIVE_INFINITY };

interface ListReaderOptions {
  /** The bounds of values that are read and answered. Default: unbounded. */
  readonly bounds?: ByteBounds;
  /** Counts the bytes of pages that wait. Default: unbounded. */
  readonly answers?: HeldBytes;
  /** Reads long lists in turns. Default: a scheduler of its own. */
  readonly scheduler?: TaskScheduler;
}

/** The data for reading one list. */
export interface Reading extends Pick<PageOptions, 'params' | 'formOf' | 'maxBytes'> {
  /** The owner of the values. */
  readonly ownerId: string;
  /** Requests a page. */
  readonly ask: (request: ExchangeRequest) => Promise<SourcedAnswer>;
  /**
   * The reason why the list ends before the page that was refused, as a clause; undefined: the server does not offer
   * the list. May throw.
   */
  readonly refused: (error: JsonRpcError, request: ExchangeRequest) => string | undefined;
  /** Lists that are checked do not share their items with others. Default: all objects are items. */
  readonly check?: ItemCheck;
}

/** Checks the items of one list. */
export interface ItemCheck {
  /** The items of a page that are kept. */
  page(items: readonly unknown[]): Promise<readonly JsonObject[]>;
  /** The items that are kept of all pages. */
  all(items: readonly JsonObject[]): readonly JsonObject[];
  /** The items that were not kept, so far. */
  readonly withheld: readonly WithheldItem[];
}

export interface ReadList {
  /** Equal lists that are in use at the same time share their items, which must not be changed. */
  readonly items: readonly JsonObject[];
  readonly withheld: readonly WithheldItem[];
  /** Memory of the items: see memoryOf. */
  readonly bytes: number;
  /** The reason why the list ends before its last page, as a clause. */
  readonly cut?: string | undefined;
}

interface KnownList extends Omit<ReadList, 'items'> {
  /** The pages after the first one. */
  readonly rest: readonly { readonly cursor: string; readonly digest: string }[];
  readonly items: WeakRef<readonly JsonObject[]>;
}

/** A page, or see Reading.refused. */
type PageAnswer = { readonly result: JsonText; readonly cut?: string } | string | undefined;

type Count = (values: number, characters: number) => void;

/** Reads the lists of a gateway. */
export class ListReader {
  readonly #values: UserShares;
  readonly #answers: HeldBytes;
  readonly #scheduler: TaskScheduler;
  /** The lists that were read, by list and digest of the first page. */
  readonly #known = new LruMap<KnownList>(MAX_LISTS);
  /** Forgets what is known of lists whose items nothing uses. */
  readonly #unused = new FinalizationRegistry<string>((key) => {
    if (this.#known.peek(key)?.items.deref() === undefined) this.#known.delete(key);
  });
  readonly #digests = new WeakMap<JsonText, string>();

  constructor({ bounds = UNBOUNDED, answers, scheduler }: ListReaderOptions = {}) {
    this.#values = byteShares(bounds);
    this.#answers = answers ?? new HeldBytes(UNBOUNDED, () => 0);
    this.#scheduler = scheduler ?? new TaskScheduler();
  }

  /**
   * Resolves with what `use` makes of the list, whose values count until then. Throws QUEUE_FULL when there is no room for
   * them, BACKEND_UNAVAILABLE when the bytes of a page are needed for others; else rejects as `ask`, `refused` and `use`.
   */
  async read<T>(list: ListField, reading: Reading, use: (list: ReadList) => T | Promise<T>): Promise<T> {
    const { ownerId } = reading;
    let counted = 0;
    const count: Count = (values, characters) => {
      const bytes = memoryOf(values, characters);
      if (!this.#hasRoom(ownerId, counted, bytes)) throw tooManyLists();
      this.#values.add(ownerId, bytes);
      counted += bytes;
    };
    try {
      return await use(await this.#read(list, reading, count));
    } finally {
      this.#values.release(ownerId, counted);
    }
  }

  /** True when the owner may have the list: one of any size, of which it has `counted` bytes, or several within its share. */
  #hasRoom(ownerId: string, counted: number, bytes: number): boolean {
    const exceeded = this.#values.exceededBy(ownerId, bytes);
    if (exceeded?.isShare !== true) return exceeded === undefined;
    const isOnly = this.#values.held(ownerId) === counted || ownerId === NO_CALLER;
    return isOnly && this.#values.total + bytes <= this.#values.most;
  }

  async #read(list: ListField, reading: Reading, count: Count): Promise<ReadList> {
    const { params, formOf, maxBytes, check } = reading;
    const method = LIST_METHODS[list];
    const known = `${check === undefined ? '' : 'checked '}${list}`;
    const first = await this.#ask(reading, params === undefined ? { method } : { method, params });
    const asked: PageAnswer[] = [first];
    const before = isPage(first) ? this.#find(known, this.#digestOf(first.result)) : undefined;
    let isKnown = before !== undefined;
    for (const { cursor, digest } of before?.rest ?? []) {
      const page = await this.#ask(reading, { method, params: { ...params, cursor } });
      asked.push(page);
      isKnown = isPage(page) && this.#digestOf(page.result) === digest;
      if (!isKnown) break;
    }
    if (before !== undefined && isKnown) return before.list;
    const pages: { readonly cursor: string; readonly digest: string }[] = [];
    let isComplete = true;
    const next = async (request: ExchangeRequest) => {
      const answer = asked.length > 0 ? asked.shift() : await this.#ask(reading, request);
      if (isPage(answer))
        pages.push({ cursor: String(request.params?.cursor), digest: this.#digestOf(answer.result) });
      else isComplete = false;
      return answer;
    };
    const { items, values, bytes, cut } = await gatherPages(list, next, {
      ...definedFields({ params, formOf, maxBytes, keep: check?.page }),
      beforeParsing: count,
      scheduler: this.#scheduler,
    });
    const found = { withheld: check?.withheld ?? [], bytes: memoryOf(values, bytes), cut };
    const read = { ...found, items: check === undefined ? items : check.all(items) };
    return isComplete ? this.#keep(known, pages, read) : read;
  }

  async #ask({ ask, refused }: Reading, request: ExchangeRequest): Promise<PageAnswer> {
    const answer = await ask(request);
    await this.turn(answer); // before it is parsed: many may have arrived together
    return answer.event.kind === 'result' ? answer.event : refused(answer.event.error, request);
  }

  /** The last list that began with this page: it is the same if the other pages are, too. */
  #find(known: string, firstPage: string): { rest: KnownList['rest']; list: ReadList } | undefined {
    const found = this.#known.get(`${known} ${firstPage}`);
    const items = found?.items.deref();
    if (found === undefined || items === undefined) return undefined;
    const { rest, ...others } = found;
    return { rest, list: { ...others, items } };
  }

  /** Keeps a list with all its pages in their order. Has the items of equal pages, which may have been read meanwhile. */
  #keep(
    known: string,
    [first, ...rest]: readonly { readonly cursor: string; readonly digest: string }[],
    list: ReadList,
  ): ReadList {
    if (first === undefined) return list;
    const before = this.#find(known, first.digest);
    const digestsOf = (pages: KnownList['rest']) => pages.map(({ digest }) => digest).join();
    if (before !== undefined && digestsOf(before.rest) === digestsOf(rest))
      return { ...list, items: before.list.items };
    const key = `${known} ${first.digest}`;
    this.#known.set(key, { ...list, rest, items: new WeakRef(list.items) });
    this.#unused.register(list.items, key);
    return list;
  }

  #digestOf(page: JsonText): string {
    const known = this.#digests.get(page);
    if (known !== undefined) return known;
    const digest = hash('sha256', page.bytes, 'base64url');
    this.#digests.set(page, digest);
    return digest;
  }

  /** Waits for a turn, in which a page is read. Throws BACKEND_UNAVAILABLE when its bytes are needed for others. */
  async turn(answer: SourcedAnswer): Promise<void> {
    const turn = this.#scheduler.turn();
    return turn && this.during(answer, turn);
  }

  /**
   * Counts the bytes of a page until `work` is done, which does not use them. Throws BACKEND_UNAVAILABLE when they are
   * needed for others.
   */
  async during<T>({ event, serverId }: SourcedAnswer, work: Promise<T>): Promise<T> {
    if (event.kind !== 'result') return work;
    const { promise: cut, reject } = Promise.withResolvers<never>();
    const refuse = () => reject(backendUnavailable(ANSWERS_HOLD_TOO_MUCH, { delivered: 'yes' }));
    const holding = this.#answers.hold(serverId, refuse);
    try {
      holding.set(event.result.bytes.length);
      return await Promise.race([work, cut]);
    } finally {
      holding.release();
    }
  }
}

function isPage(answer: PageAnswer): answer is Exclude<PageAnswer, string | undefined> {
  return typeof answer === 'object' && answer.cut === undefined;
}

/** Large lists of one caller, or of all callers, that are read and answered, use all the memory that they may. */
function tooManyLists(): GatewayError {
  const message = 'Too many large lists are being read and answered; try again when some are answered.';
  return new GatewayError('QUEUE_FULL', message, retryAfter(1));
}

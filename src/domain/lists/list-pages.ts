// Lists that come in pages: where a list of a backend ends. Servers of the legacy era end it with cursors that are
// none, and some lists have no end at all: the same cursor again and again, or the same page under ever new
// cursors. Source: ADR 111.

import type { ExchangeRequest } from '../calls/exchange.ts';
import type { FinalEvent } from '../calls/exchange-event.ts';
import { parsedResult, tooLargePage } from '../calls/parsed-result.ts';
import type { GatewayError } from '../errors/errors.ts';
import { isJsonObject, type JsonObject, JsonText } from '../json/json.ts';
import { editedFields, fieldIn, itemsOf, REMOVED } from '../json/json-fields.ts';
import { hasMoreValues, memberBytes, QUOTE, valuesInBytes } from '../json/json-scanner.ts';
import { LIMITS } from '../limits.ts';
import { type Era, LIST_METHODS, type ListField, listReturnedBy } from '../mcp/mcp.ts';
import { MAX_LIST_VALUES } from '../memory/held-bytes.ts';
import { TaskScheduler } from '../time/task-scheduler.ts';

/** Items of one list. */
export const MAX_LIST_ITEMS = 100_000;

/**
 * The event of a result that arrived. A page of a list has no cursor that leads nowhere: in the legacy era an
 * empty one or one that is not text; in all eras the one that was asked with. Throws BACKEND_UNAVAILABLE for a page that
 * is too large.
 */
export function resultEvent(
  request: ExchangeRequest,
  result: JsonText,
  era: Era,
): Extract<FinalEvent, { kind: 'result' }> | GatewayError {
  if (listReturnedBy(request.method) === undefined) return { kind: 'result', result };
  const tooLarge = tooLargePage(request, result);
  if (tooLarge !== undefined) return tooLarge;
  const written = fieldIn(result.bytes, 'nextCursor');
  if (written === undefined) return { kind: 'result', result };
  const isText = written[0] === QUOTE && (written.length > EMPTY || era === 'modern');
  const asked = request.params?.cursor;
  const isRepeated = isText && asked !== undefined && JSON.parse(written.toString()) === asked;
  if (isText ? !isRepeated : era === 'modern') return { kind: 'result', result };
  const ended = withoutCursor(result);
  return isRepeated ? { kind: 'result', result: ended, cut: REPEATED } : { kind: 'result', result: ended };
}

const EMPTY = '""'.length;
const REPEATED = 'its cursor repeats';

function withoutCursor({ bytes }: JsonText): JsonText {
  return JsonText.ofBytes(editedFields(bytes, (key) => (key === 'nextCursor' ? REMOVED : undefined)));
}

/** Pages in a row that repeat what is known. */
const MAX_REPEATED_PAGES = 3;

/** Watches the pages of one list while they are gathered. */
class PageWatch {
  readonly #cursors = new Set<string>();
  readonly #names = new Set<unknown>();
  #repeatedPages = 0;

  /** The items of a page; none of a page that has only items of earlier pages. */
  newOn(page: readonly JsonObject[]): readonly JsonObject[] {
    const before = this.#names.size;
    for (const item of page) this.#names.add(item.uriTemplate ?? item.uri ?? item.name ?? item);
    const isRepeated = page.length > 0 && before > 0 && this.#names.size === before;
    if (page.length > 0) this.#repeatedPages = isRepeated ? this.#repeatedPages + 1 : 0;
    return isRepeated ? [] : page;
  }

  /** The reason why the list ends although its last page has this cursor, as a clause; undefined: it goes on. */
  endAt(cursor: string): string | undefined {
    if (this.#repeatedPages >= MAX_REPEATED_PAGES) return 'its pages repeat';
    if (this.#cursors.has(cursor)) return REPEATED;
    this.#cursors.add(cursor);
    return undefined;
  }
}

interface GatheredPages {
  readonly items: JsonObject[];
  /** Bytes of the pages, and their values. */
  readonly bytes: number;
  readonly values: number;
  /** The reason why the list ends before its last page, as a clause. */
  readonly cut?: string | undefined;
}

export interface PageOptions {
  /** Params of all requests, besides the cursor. */
  readonly params?: JsonObject | undefined;
  /** See JsonText. Default: the value. */
  readonly formOf?: (page: JsonText) => 'value' | 'exactValue';
  /** The items of a page that are kept. Default: all objects. */
  readonly keep?: (items: readonly unknown[]) => readonly JsonObject[] | Promise<readonly JsonObject[]>;
  /** Called before a page is parsed, with the number of its values and bytes; what it throws ends the list. */
  readonly beforeParsing?: (values: number, bytes: number) => void;
  /** The most bytes of all pages. Default: LIMITS.backendMessageBytes. */
  readonly maxBytes?: number;
  /** Runs the tasks in which the items of large pages are parsed. Default: a scheduler of this list. */
  readonly scheduler?: TaskScheduler;
}

/**
 * All items of one list from one backend, in order. `ask` resolves with the result of one page; or with undefined
 * when the backend does not offer the list, or with a clause that says why the list ends before this page. A list
 * that does not end, or exceeds a bound of LIMITS, ends with what was gathered.
 */
export async function gatherPages(
  field: ListField,
  ask: (
    request: ExchangeRequest,
  ) => Promise<Omit<Extract<FinalEvent, { kind: 'result' }>, 'kind'> | string | undefined>,
  {
    params,
    formOf,
    keep = objectsIn,
    beforeParsing,
    maxBytes = LIMITS.backendMessageBytes,
    scheduler = new TaskScheduler(),
  }: PageOptions = {},
): Promise<GatheredPages> {
  const method = LIST_METHODS[field];
  const items: JsonObject[] = [];
  const watch = new PageWatch();
  let request: ExchangeRequest = params === undefined ? { method } : { method, params };
  let [bytes, values] = [0, 0];
  const endedBy = (cut?: string): GatheredPages => ({ items, bytes, values, cut });
  for (let page = 0; page < LIMITS.listPages; page += 1) {
    const answer = await ask(request);
    if (answer === undefined || typeof answer === 'string') return endedBy(answer);
    const { length } = answer.result.bytes;
    if (bytes + length > maxBytes) return endedBy(TOO_LARGE);
    bytes += length;
    const more = valuesInBytes(answer.result.bytes, MAX_LIST_VALUES);
    values += more;
    if (values <= MAX_LIST_VALUES) beforeParsing?.(more, length);
    const form = formOf?.(answer.result);
    const isSmall = more <= LIMITS.parsedAtOnce;
    const result = isSmall
      ? parsedResult(answer.result, form)
      : await parsedPage(field, answer.result, form, scheduler);
    if (!isJsonObject(result)) return endedBy();
    if (values > MAX_LIST_VALUES) return endedBy(TOO_LARGE);
    const found = result[field];
    const kept = Array.isArray(found) ? keep(found) : [];
    // Not later than needed: the first calls after an opening ask for its tools.
    for (const item of watch.newOn(kept instanceof Promise ? await kept : kept)) items.push(item);
    if (answer.cut !== undefined) return endedBy(answer.cut);
    const { nextCursor: cursor } = result;
    if (typeof cursor !== 'string') return endedBy();
    const cut =
      items.length > MAX_LIST_ITEMS ? `it has more than ${MAX_LIST_ITEMS} items` : watch.endAt(cursor);
    if (cut !== undefined) return endedBy(cut);
    request = { method, params: { ...params, cursor } };
  }
  return endedBy(`it has more than ${LIMITS.listPages} pages`);
}

const TOO_LARGE = 'it is too large';

/** A page as a value; a large one is parsed in several tasks. Throws BACKEND_UNAVAILABLE for one that is too large. */
export async function readPage(field: ListField, page: JsonText, scheduler: TaskScheduler): Promise<unknown> {
  const isLarge = hasMoreValues(page.bytes, LIMITS.parsedAtOnce);
  return isLarge ? parsedPage(field, page, undefined, scheduler) : parsedResult(page);
}

/**
 * A large page, whose items are parsed in several tasks. Throws BACKEND_UNAVAILABLE when one of them, or the rest, is too
 * large for a task.
 */
async function parsedPage(
  field: ListField,
  page: JsonText,
  form: 'value' | 'exactValue' | undefined,
  scheduler: TaskScheduler,
): Promise<unknown> {
  const tooLarge = tooLargePage({ method: LIST_METHODS[field] }, page);
  if (tooLarge !== undefined) throw tooLarge;
  const listed = memberBytes(page.bytes, field);
  const rest = editedFields(page.bytes, (key) => (key === field ? NO_ITEMS : undefined));
  const result = parsedResult(JsonText.ofBytes(rest), form);
  if (listed === undefined || !isJsonObject(result)) return result;
  const items: unknown[] = [];
  await scheduler.each(itemsInParts(listed), (part) => {
    for (const item of part) items.push(parsedResult(JsonText.ofBytes(item), form));
  });
  return { ...result, [field]: items };
}

const NO_ITEMS = Buffer.from('[]');
/** Bytes of the items of one task. */
const TASK_BYTES = 64 * 1024;

/** The items of an array in order, as many as one task takes. */
export function* itemsInParts(listed: Buffer): Generator<readonly Buffer[]> {
  let part: Buffer[] = [];
  let bytes = 0;
  for (const { start, end } of itemsOf(listed)) {
    part.push(listed.subarray(start, end));
    bytes += end - start;
    if (bytes < TASK_BYTES) continue;
    yield part;
    part = [];
    bytes = 0;
  }
  if (part.length > 0) yield part;
}

function objectsIn(items: readonly unknown[]): readonly JsonObject[] {
  return items.filter(isJsonObject);
}

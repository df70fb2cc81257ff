// The tools in a list of a template that a caller may call. Names are matched in several turns of the event loop,
// and once for equal rights: a list may have thousands, and rights have globs. An answer is not parsed. Source:
// ADR 230, ADR 306, ADR 322.

import { hash } from 'node:crypto';
import { concatMap, type Observable } from 'rxjs';
import { groupsToMatch } from '../accounts/globs.ts';
import type { Rights, ToolRights } from '../accounts/rights.ts';
import { type ExchangeRequest, isSourcedAnswer, type SourcedEvent } from '../calls/exchange.ts';
import { tooLargePage } from '../calls/parsed-result.ts';
import { type JsonObject, JsonText } from '../json/json.ts';
import { arrayOf, editedFields } from '../json/json-fields.ts';
import { memberBytes, memberText } from '../json/json-scanner.ts';
import { PerList } from '../memory/per-list.ts';
import type { TaskScheduler } from '../time/task-scheduler.ts';
import { itemsInParts } from './list-pages.ts';
import type { ListReader } from './list-reader.ts';

/** What reads lists: in turns, and each page once. */
export interface ListReading {
  readonly scheduler: TaskScheduler;
  readonly listReader: ListReader;
}

/**
 * The answers of a request, with `tools/list` without the tools that the caller may not call. To be used after a
 * cache, which callers with other rights share.
 */
export function listedAnswers(
  template: string,
  request: ExchangeRequest,
  events$: Observable<SourcedEvent>,
  reading: ListReading,
): Observable<SourcedEvent> {
  const { method, tools } = request;
  if (tools === undefined || method !== 'tools/list') return events$;
  return events$.pipe(concatMap((answer) => listedAnswer({ ...request, template, tools }, answer, reading)));
}

async function listedAnswer(
  request: ExchangeRequest & { readonly template: string; readonly tools: ToolRights },
  sourced: SourcedEvent,
  { scheduler, listReader }: ListReading,
): Promise<SourcedEvent> {
  const { event } = sourced;
  if (!isSourcedAnswer(sourced) || event.kind !== 'result') return sourced;
  const tooLarge = tooLargePage(request, event.result);
  if (tooLarge !== undefined) throw tooLarge;
  await listReader.turn(sourced); // many may have arrived together
  const { bytes } = event.result;
  const listed = memberBytes(bytes, 'tools') ?? NO_TOOLS;
  const work = allowedItems(request.template, request.tools, listed, scheduler);
  const allowed = arrayOf(await listReader.during(sourced, work));
  // Everything else keeps its bytes.
  const shown = editedFields(bytes, (key) => (key === 'tools' ? allowed : undefined));
  return { ...sourced, event: { kind: 'result', result: JsonText.ofBytes(shown) } };
}

const NO_TOOLS = Buffer.from('[]');

async function allowedItems(
  template: string,
  tools: ToolRights,
  listed: Buffer,
  scheduler: TaskScheduler,
): Promise<readonly Buffer[]> {
  const items: Buffer[] = [];
  const names: (string | null)[] = [];
  await scheduler.each(itemsInParts(listed), (part) => {
    for (const item of part) {
      items.push(item);
      names.push(memberText(item, 'name') ?? null);
    }
  });
  const indexes = await allowedIndexes(template, tools, names, scheduler);
  return indexes.flatMap((index) => items[index] ?? []);
}

/** The items of a list that were read. The same array for the same items and equal rights. */
export function allowedTools(
  template: string,
  tools: ToolRights,
  items: readonly JsonObject[],
  scheduler: TaskScheduler,
): Promise<readonly JsonObject[]> {
  return ITEMS.of(items, rightsAt(template, tools), async () => {
    const names = items.map(({ name }) => (typeof name === 'string' ? name : null));
    const allowed = new Set(await allowedIndexes(template, tools, names, scheduler));
    return items.filter((_, index) => allowed.has(index));
  });
}

/**
 * The indexes of the names that the caller may call. Most lists are read again and again with the same names, so the
 * last results are found by a digest of them.
 */
function allowedIndexes(
  template: string,
  tools: ToolRights,
  names: readonly (string | null)[],
  scheduler: TaskScheduler,
): Promise<readonly number[]> {
  const key = hash('sha256', JSON.stringify([template, tools.text, names]), 'base64url');
  return INDEXES.of(scheduler, key, () => matchedIndexes(template, tools, names, scheduler));
}

async function matchedIndexes(
  template: string,
  tools: ToolRights,
  names: readonly (string | null)[],
  scheduler: TaskScheduler,
): Promise<readonly number[]> {
  const named = names.flatMap((tool, index) => (tool === null ? [] : [{ template, tool, index }]));
  const allowed = await callable({ tools }, named, (item) => item, scheduler);
  return allowed.map(({ index }) => index);
}

/** The items that are about no tool, or about one that the caller may call. */
export async function callable<T>(
  { tools }: Pick<Rights, 'tools'>,
  items: readonly T[],
  toolOf: (item: T) => { readonly template: string; readonly tool: string } | undefined,
  scheduler: TaskScheduler,
): Promise<readonly T[]> {
  if (tools === undefined) return items;
  const allowed: T[] = [];
  await scheduler.each(
    groupsToMatch(items, (item) => toolOf(item)?.tool ?? ''),
    (group) => {
      for (const item of group) {
        const own = toolOf(item);
        if (own === undefined || tools.allow(own.template, own.tool)) allowed.push(item);
      }
    },
  );
  return allowed;
}

function rightsAt(template: string, { text }: ToolRights): string {
  return `${template} ${text}`;
}

const ITEMS = new PerList<readonly JsonObject[]>();
/** The allowed indexes in lists of names, by the scheduler of a gateway: as many lists, each with up to 100,000 indexes. */
const INDEXES = new PerList<readonly number[]>();

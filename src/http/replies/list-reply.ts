// The answer to a request for a list over REST, made once for all callers with the same items, and in several turns of
// the event loop. Source: ADR 268.

import { type JsonObject, JsonText } from '../../domain/json/json.ts';
import { jsonPieces } from '../../domain/json/json-pieces.ts';
import { LIST_METHODS, type ListField } from '../../domain/mcp/mcp.ts';
import type { ListResult } from '../../gateway/gateway-types.ts';
import { KEY_FIELDS } from '../../protocol/aggregate/lists/acceptable-items.ts';
import type { HttpRequest } from '../request.ts';
import type { Services } from '../services.ts';
import { endOf } from './exchange-reply.ts';
import { joinedInTurns } from './json-in-turns.ts';
import { bytes, type Reply } from './reply.ts';

/** Bytes that are sent in one task. */
const SENT_BYTES = 256 * 1024;

/** Reports do not contain lists. */
const NO_RESULT = JsonText.ofValue({});

interface AskedList {
  readonly template: string;
  readonly list: ListField;
  readonly request: Pick<HttpRequest, 'signal' | 'callerId' | 'callerTools' | 'id' | 'report'>;
  /** The shown form of an item. It depends on the kind of list only. */
  readonly show: (item: JsonObject) => object;
}

/** All items of a list, from one instance. */
export async function listReply(
  { template, list, request, show }: AskedList,
  {
    promisedAnswers,
    scheduler,
    listAnswers,
  }: Pick<Services, 'promisedAnswers' | 'scheduler' | 'listAnswers'>,
): Promise<Reply> {
  const { signal, callerId, callerTools: tools, id: requestId } = request;
  const report = request.report({ method: LIST_METHODS[list] });
  const options = { signal, callerId, tools, requestId, report };
  try {
    return await promisedAnswers.useList(template, list, options, async (found) => {
      report.ended({ kind: 'result', result: NO_RESULT });
      const make = () => joinedInTurns(piecesOf(list, found, show), scheduler);
      const answer = await listAnswers.of(found.items, list, make);
      // Many may have waited for it, and the system copies megabytes of each that is sent.
      await scheduler.turn(Math.max(1, answer.length / SENT_BYTES));
      return bytes(200, answer, { instanceId: found.instanceId });
    });
  } catch (thrown) {
    report.ended(endOf(thrown));
    throw thrown;
  }
}

/** Leaves out items without a name, or without a URI, which clients cannot use. */
function* piecesOf(
  list: ListField,
  { items: all, cut, instanceId }: ListResult,
  show: AskedList['show'],
): Generator<string> {
  const items = all.filter((item) => isText(item[KEY_FIELDS[list]]));
  let separator = `{"${list}":[`;
  for (const item of items) {
    yield separator;
    yield* jsonPieces(show(item));
    separator = ',';
  }
  // That of a view, which comes from no instance, may also be old in part.
  const what = instanceId === '' ? 'may be incomplete' : 'ends early';
  const warning = cut === undefined ? {} : { warning: `The list ${what}: ${cut}.` };
  const rest = JSON.stringify({ count: items.length, ...warning }).slice(1);
  yield `${items.length === 0 ? separator : ''}],${rest}`;
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

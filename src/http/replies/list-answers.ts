// The answers to requests for lists over REST, made once for all callers with the same items, and in several turns
// of the event loop. Source: ADR 334.

import type { JsonObject } from '../../domain/json/json.ts';
import { jsonPieces } from '../../domain/json/json-pieces.ts';
import type { ListField } from '../../domain/mcp/mcp.ts';
import type { TaskScheduler } from '../../domain/tasks/task-scheduler.ts';
import type { ListResult } from '../../gateway/gateway-types.ts';

/** UTF-16 units of JSON that are made in one task of the scheduler. */
const PIECE_UNITS = 32_768;

/** Bytes that are sent in one task. */
const SENT_BYTES = 256 * 1024;

type Show = (item: JsonObject) => object;

export class ListAnswers {
  readonly #scheduler: Pick<TaskScheduler, 'turn'>;
  /** The answers of the lists that are in use. */
  readonly #answers = new WeakMap<ListResult['items'], Promise<Buffer>>();

  constructor(scheduler: Pick<TaskScheduler, 'turn'>) {
    this.#scheduler = scheduler;
  }

  /** JSON. The items are of one kind of list, and are shown in one way. */
  async of(field: ListField, list: ListResult, show: Show): Promise<Buffer> {
    const known = this.#answers.get(list.items) ?? this.#written(piecesOf(field, list, show));
    this.#answers.set(list.items, known);
    const answer = await known;
    // Many may have waited for it, and the system copies megabytes of each that is sent.
    await this.#scheduler.turn(Math.max(1, answer.length / SENT_BYTES));
    return answer;
  }

  async #written(pieces: Iterable<string>): Promise<Buffer> {
    const written: Buffer[] = [];
    let text = '';
    for (const piece of pieces) {
      text += piece;
      if (text.length < PIECE_UNITS) continue;
      written.push(Buffer.from(text));
      text = '';
      await this.#scheduler.turn();
    }
    written.push(Buffer.from(text));
    return Buffer.concat(written);
  }
}

function* piecesOf(field: ListField, { items, cut }: ListResult, show: Show): Generator<string> {
  let separator = `{"${field}":[`;
  for (const item of items) {
    yield separator;
    yield* jsonPieces(show(item));
    separator = ',';
  }
  const warning = cut === undefined ? {} : { warning: `The list ends early: ${cut}.` };
  const rest = JSON.stringify({ count: items.length, ...warning }).slice(1);
  yield `${items.length === 0 ? separator : ''}],${rest}`;
}

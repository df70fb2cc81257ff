// Ids of events of HTTP+SSE: the session of the stream, the number of its messages, and the requests that wait for
// an answer. The gateway stores nothing for a call, so the client brings these ids when it opens its stream again:
// calls that died with their node are then answered with an error, instead of never. Source: ADR 165.

import { jsonIn } from '../../domain/json/json.ts';
import { type JsonRpcId, readId } from '../../domain/mcp/jsonrpc.ts';
import type { McpRequest } from '../endpoint-types.ts';
import { headerOf } from '../headers.ts';

/** The id of the session, a number, and the ids of requests as base64url of a JSON array. */
const EVENT_ID = /^([\w-]{51})\.(\d{1,9})(?:\.([\w-]{1,1024}))?$/;
/** The most bytes of the ids that are named; the ids of further requests are left out. */
const MAX_IDS = 512;
/** Answers that the client may not have got, and that are remembered. Longer ids are not. */
const MAX_ANSWERED = 64;

/** The session of the stream that a client continues; undefined where it opens a first one. */
export function sessionOfEvent(headers: McpRequest['headers']): string | undefined {
  return EVENT_ID.exec(headerOf(headers, 'last-event-id') ?? '')?.[1];
}

/** The requests that had no answer when the client had the last event. */
export function unansweredAt(headers: McpRequest['headers']): JsonRpcId[] {
  const [, , , encoded = ''] = EVENT_ID.exec(headerOf(headers, 'last-event-id') ?? '') ?? [];
  const ids = jsonIn(Buffer.from(encoded, 'base64url').toString());
  return Array.isArray(ids) ? ids.flatMap((id) => readId(id) ?? []) : [];
}

/** The number of the last message that the client had then. */
function numberAt(headers: McpRequest['headers']): number {
  const [, , number = 0] = EVENT_ID.exec(headerOf(headers, 'last-event-id') ?? '') ?? [];
  return Number(number);
}

/**
 * Whether the client reads ids of events that have another name: it follows the standards of browsers. Others,
 * such as the SDK for Python, log each event that they do not know.
 */
export function readsPositions({ headers }: McpRequest): boolean {
  return headers['sec-fetch-mode'] !== undefined || sessionOfEvent(headers) !== undefined;
}

/** A request with the number of its answer. */
interface Answered {
  readonly id: JsonRpcId;
  readonly number: number;
}

/** The requests of one session that wait for an answer, and those that were answered last. */
export class SsePosition {
  readonly #sessionId: string;
  readonly #waiting = new Set<JsonRpcId>();
  /** The requests that were answered last, at most MAX_ANSWERED, oldest first. */
  #answered: Answered[] = [];
  /** Number of the last message. */
  #number: number;

  /** `opened`: the headers of its first stream here. A client that continues has an event of an earlier life. */
  constructor(sessionId: string, opened: McpRequest['headers']) {
    this.#sessionId = sessionId;
    this.#number = numberAt(opened);
  }

  /** The id of the next event without a message. */
  get eventId(): string {
    return this.eventIdAt(this.#number);
  }

  /** The id of the event of the message with this number. In it, requests that were answered later still wait. */
  eventIdAt(number: number): string {
    const named: JsonRpcId[] = [];
    let left = MAX_IDS;
    const later = number === this.#number ? [] : this.#answered.filter((each) => each.number > number);
    for (const id of [...this.#waiting, ...later.map((each) => each.id)]) {
      left -= Buffer.byteLength(JSON.stringify(id)) + 1;
      if (left < 0) break;
      named.push(id);
    }
    const encoded = named.length === 0 ? '' : `.${Buffer.from(JSON.stringify(named)).toString('base64url')}`;
    return `${this.#sessionId}.${number}${encoded}`;
  }

  /** The number of the next message. */
  next(): number {
    this.#number += 1;
    return this.#number;
  }

  /** The requests of a POST, without those whose ids wait for answers already. */
  begin(parsed: unknown): readonly JsonRpcId[] {
    const begun: JsonRpcId[] = [];
    for (const message of Array.isArray(parsed) ? parsed : [parsed]) {
      const { id, method } = Object(message);
      const read = typeof method === 'string' ? readId(id) : undefined;
      if (typeof read !== 'string' && typeof read !== 'number') continue; // a larger number has no place in JSON
      if (this.#waiting.has(read)) continue;
      this.#waiting.add(read);
      begun.push(read);
    }
    return begun;
  }

  /**
   * The position at which a client continues its stream: the number of the last message that it has, and the requests for
   * whose answers it waits in vain. These wait from now on: requests of an earlier life that the client names, and requests
   * whose answers it has not got and which are not kept. `later`: messages after that one.
   */
  resume(
    headers: McpRequest['headers'],
    isKept: (number: number) => boolean,
  ): { readonly number: number; readonly later: number; readonly lost: readonly JsonRpcId[] } {
    const number = Math.min(numberAt(headers), this.#number);
    const hasAnswer = new Set(this.#answered.map(({ id }) => id));
    const unread = this.#answered.filter((each) => each.number > number);
    const earlier = unansweredAt(headers).filter((id) => !hasAnswer.has(id));
    const gone = unread.filter((each) => !isKept(each.number)).map(({ id }) => id);
    this.#answered = this.#answered.filter((each) => each.number >= number && !gone.includes(each.id));
    const lost = [...new Set([...earlier, ...gone])].filter((id) => !this.#waiting.has(id));
    for (const id of lost) this.#waiting.add(id);
    return { number, later: this.#number - number, lost };
  }

  /** Notes requests that the last message answered. False when none of them waited. */
  answer(ids: readonly JsonRpcId[]): boolean {
    const answered = ids.filter((id) => this.#waiting.delete(id));
    for (const id of answered) {
      if (String(id).length > MAX_IDS) continue;
      this.#answered.push({ id, number: this.#number });
      if (this.#answered.length > MAX_ANSWERED) this.#answered.shift();
    }
    return answered.length > 0;
  }

  /** Notes requests that get no answer. False when none of them waited. */
  end(ids: readonly JsonRpcId[]): boolean {
    return ids.map((id) => this.#waiting.delete(id)).includes(true);
  }
}

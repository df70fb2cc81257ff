// Ids of events of HTTP+SSE: the session of the stream, and the requests that wait for an answer. The gateway stores nothing for a call, so the
// client brings these when it opens its stream again: after the death of a node they have no answer, which it would wait for. Source: ADR 165.

import { jsonIn } from '../../domain/json.ts';
import { type JsonRpcId, readId } from '../../domain/jsonrpc.ts';
import type { McpRequest } from '../endpoint-types.ts';
import { headerOf } from '../headers.ts';

/** The id of the session, a number, and the ids of requests as base64url of a JSON array. */
const EVENT_ID = /^([\w-]{51})\.\d{1,9}(?:\.([\w-]{1,1024}))?$/;
/** Most bytes of the ids that are named; those of further requests are left out. */
const MAX_IDS = 512;

/** The session of the stream that a client continues; undefined where it opens a first one. */
export function sessionOfEvent(headers: McpRequest['headers']): string | undefined {
  return EVENT_ID.exec(headerOf(headers, 'last-event-id') ?? '')?.[1];
}

/** The requests that had no answer when the client had the last event. */
export function unansweredAt(headers: McpRequest['headers']): JsonRpcId[] {
  const [, , encoded = ''] = EVENT_ID.exec(headerOf(headers, 'last-event-id') ?? '') ?? [];
  const ids = jsonIn(Buffer.from(encoded, 'base64url').toString());
  return Array.isArray(ids) ? ids.flatMap((id) => readId(id) ?? []) : [];
}

/**
 * Whether the client reads ids of events that have another name: it follows the standards of browsers. Others, such as the SDK for Python, log each
 * event that they do not know.
 */
export function readsPositions({ headers }: McpRequest): boolean {
  return headers['sec-fetch-mode'] !== undefined || sessionOfEvent(headers) !== undefined;
}

/** The requests of one stream that wait for an answer. */
export class SsePosition {
  readonly #sessionId: string;
  readonly #waiting = new Set<JsonRpcId>();

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  /** For the next event. */
  get eventId(): string {
    const named: JsonRpcId[] = [];
    let left = MAX_IDS;
    for (const id of this.#waiting) {
      left -= Buffer.byteLength(JSON.stringify(id)) + 1;
      if (left < 0) break;
      named.push(id);
    }
    const encoded = named.length === 0 ? '' : `.${Buffer.from(JSON.stringify(named)).toString('base64url')}`;
    return `${this.#sessionId}.0${encoded}`;
  }

  /** Returns the requests of a POST. */
  begin(parsed: unknown): readonly JsonRpcId[] {
    const begun: JsonRpcId[] = [];
    for (const message of Array.isArray(parsed) ? parsed : [parsed]) {
      const { id, method } = Object(message);
      const read = typeof method === 'string' ? readId(id) : undefined;
      if (typeof read !== 'string' && typeof read !== 'number') continue; // a larger number has no place in JSON
      this.#waiting.add(read);
      begun.push(read);
    }
    return begun;
  }

  waitsFor(id: JsonRpcId): boolean {
    return this.#waiting.has(id);
  }

  /** False when none of them waited. */
  end(ids: readonly JsonRpcId[]): boolean {
    return ids.map((id) => this.#waiting.delete(id)).includes(true);
  }
}

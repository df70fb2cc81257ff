// A backend of the modern era whose tools want arguments repeated in headers, for specs of the calls
// that get them and of calls that are refused without them.

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { lastValueFrom, toArray } from 'rxjs';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { ExchangeRequest } from '../../../src/domain/exchange.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { answerJson, messageOf } from '../raw-server.ts';
import { withRawTransport } from './open-http.ts';

export const REGION = { type: 'string', 'x-mcp-header': 'Region' };
export const CALL: ExchangeRequest = callWith({ region: 'x' });
export const MISSED = { code: -32020, message: 'a header is missing' };

export function callWith(args: JsonObject): ExchangeRequest {
  return { method: 'tools/call', params: { name: 'one', arguments: args } };
}

export function tool(name: string, properties: JsonObject): JsonObject {
  return { name, inputSchema: { type: 'object', properties } };
}

/** Answers a call. `number` counts from 1. */
export type OnCall = (response: ServerResponse, call: { id: unknown; number: number }) => void;

/** The backend, as far as it is needed here. */
export class Backend {
  /** Pages of its list of tools. */
  pages: JsonObject[][] = [[tool('one', { region: REGION })]];
  /** Whether it refuses a call, as a server does that misses a header. */
  refuses: (headers: IncomingHttpHeaders) => boolean = () => false;
  /** Answers a call in another way than most servers. */
  onCall: OnCall | undefined;
  /** When it answers a listing. */
  onList: (answer: () => void) => void = (answer) => answer();
  readonly calls: IncomingHttpHeaders[] = [];
  lists = 0;

  /** What the header says, call by call. */
  get regions(): readonly unknown[] {
    return this.calls.map((headers) => headers['mcp-param-region']);
  }

  respond(response: ServerResponse, { id, method, params }: JsonObject, headers: IncomingHttpHeaders): void {
    const say = (status: number, answer: object) =>
      answerJson(response, status, { jsonrpc: '2.0', id, ...answer });
    if (method === 'server/discover') {
      say(200, { result: { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } });
    } else if (method === 'tools/list') {
      this.lists += 1;
      this.onList(() => say(200, { result: this.#page(Number(Object(params).cursor ?? 0)) }));
    } else {
      this.calls.push(headers);
      const number = this.calls.length;
      if (this.onCall !== undefined) this.onCall(response, { id, number });
      else if (this.refuses(headers)) say(400, { error: MISSED });
      else say(200, { result: { content: [] } });
    }
  }

  #page(at: number): JsonObject {
    const more = at + 1 < this.pages.length ? { nextCursor: String(at + 1) } : {};
    return { tools: this.pages[at], ...more };
  }
}

/** Runs a body against an open transport to such a backend, and closes both whatever happens. */
export async function withBackend(
  body: (transport: Transport, backend: Backend) => Promise<void>,
): Promise<void> {
  const backend = new Backend();
  await withRawTransport(
    async (request, response) => backend.respond(response, await messageOf(request), request.headers),
    (transport) => body(transport, backend),
  );
}

/** All that a caller hears: results by value, errors by code, messages by method, and what it fails with. */
export async function heardBy(transport: Transport, request: ExchangeRequest = CALL): Promise<unknown[]> {
  const heard: unknown[] = [];
  const events$ = transport.exchange(request);
  try {
    for (const event of await lastValueFrom(events$.pipe(toArray()))) {
      if (event.kind === 'result') heard.push(event.result.value);
      else if (event.kind === 'error') heard.push(event.error.code);
      else heard.push(event.kind === 'interrupted' ? event.kind : event.method);
    }
  } catch (thrown) {
    heard.push(thrown instanceof GatewayError ? `${thrown.code}: ${thrown.message}` : thrown);
  }
  return heard;
}

/** The last of it. */
export async function outcomeOf(transport: Transport, request: ExchangeRequest = CALL): Promise<unknown> {
  return (await heardBy(transport, request)).at(-1);
}

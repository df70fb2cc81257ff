// A backend of the modern era whose tools require arguments in headers, for specs of calls that get
// these headers and of calls that are refused without them.

import type { IncomingHttpHeaders } from 'node:http';
import { lastValueFrom, toArray } from 'rxjs';
import { listTools } from '../../../src/actors/instances/instance-transport.ts';
import { ToolCache } from '../../../src/actors/instances/tool-cache.ts';
import type { ExchangeRequest } from '../../../src/domain/calls/exchange.ts';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { gatewayExchange } from '../../../src/transports/gateway-requests.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { NO_RULES } from '../../helpers/backends/tool-rules.ts';
import { type Answer, discovered, refused, result, serving } from '../scripted-server.ts';
import { withRawTransport } from './open-http.ts';

export const REGION = { type: 'string', 'x-mcp-header': 'Region' };
export const CALL: ExchangeRequest = callWith({ region: 'x' });
/** The code of servers that miss a header. */
export const MISSED = -32020;

export function callWith(args: JsonObject): ExchangeRequest {
  return { method: 'tools/call', params: { name: 'one', arguments: args } };
}

export function tool(name: string, properties: JsonObject): JsonObject {
  return { name, inputSchema: { type: 'object', properties } };
}

/** The backend, as far as it is needed here. */
export class Backend {
  /** Pages of its list of tools. */
  pages: JsonObject[][] = [[tool('one', { region: REGION })]];
  /** Whether it refuses a call, as a server does that misses a header. */
  refuses: (headers: IncomingHttpHeaders) => boolean = () => false;
  /** Answers a call in another way than most servers. */
  onCall: Answer | undefined;
  /** When it answers a listing. */
  onList: (answer: () => void) => void = (answer) => answer();
  readonly calls: IncomingHttpHeaders[] = [];
  lists = 0;

  /** What the header says, call by call. */
  get regions(): readonly unknown[] {
    return this.calls.map((headers) => headers['mcp-param-region']);
  }

  readonly respond = serving({
    'server/discover': discovered,
    'tools/list': (...asked) => {
      this.lists += 1;
      const page = this.#page(Number(asked[1].params?.cursor ?? 0));
      this.onList(() => result(page)(...asked));
    },
    'tools/call': (...asked) => {
      const { headers } = asked[1].request;
      this.calls.push(headers);
      const usual = this.refuses(headers) ? refused(400, MISSED) : result({ content: [] });
      (this.onCall ?? usual)(...asked);
    },
  });

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
  let tools: ToolCache | undefined;
  const opened = (transport: Transport) => {
    tools = new ToolCache(() => listTools(transport, systemClock), systemClock, NO_RULES);
    return body(transport, backend);
  };
  await withRawTransport(backend.respond, opened, { relistTools: () => tools?.lookUp() });
}

/** All that a caller receives: results by value, errors by code, messages by method, and its failure. */
export async function heardBy(transport: Transport, request: ExchangeRequest = CALL): Promise<unknown[]> {
  const received: unknown[] = [];
  const events$ = gatewayExchange(transport, request);
  try {
    for (const event of await lastValueFrom(events$.pipe(toArray()))) {
      if (event.kind === 'result') received.push(event.result.value);
      else if (event.kind === 'error') received.push(event.error.code);
      else received.push(event.kind === 'interrupted' ? event.kind : event.method);
    }
  } catch (thrown) {
    received.push(thrown instanceof GatewayError ? `${thrown.code}: ${thrown.message}` : thrown);
  }
  return received;
}

/** The last item of `heardBy`. */
export async function outcomeOf(transport: Transport, request: ExchangeRequest = CALL): Promise<unknown> {
  return (await heardBy(transport, request)).at(-1);
}

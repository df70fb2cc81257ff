// In-process backends for specs: a handler with a few tools, some of which wait until the spec answers them.

import type { JsonObject, JsonValue } from '../../../src/domain/json/json.ts';
import { RPC } from '../../../src/domain/mcp/jsonrpc.ts';
import type { Tool } from '../../../src/domain/mcp/mcp.ts';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { answer, defaultOptions } from '../../fixtures/mcp.ts';
import type { ToolState } from '../../fixtures/tools.ts';
import { progressTokenOf } from '../../fixtures/wire.ts';

type Context = Parameters<InProcessHandler>[1];
/** The implementation of a tool; a thrown error is answered as a JSON-RPC error. */
export type ToolBody = (args: unknown, context: Context) => unknown;

/** A handler that lists these tools and runs them. Names that start with `read` are annotated as read-only. */
export function serving(bodies: Readonly<Record<string, ToolBody>>): InProcessHandler {
  const tools = Object.keys(bodies).map((name): Tool => {
    return name.startsWith('read') ? { name, annotations: { readOnlyHint: true } } : { name };
  });
  return ({ method, params }, context) => {
    if (method === 'tools/list') return { tools };
    if (method === 'ping') return {};
    const body = method === 'tools/call' ? bodies[String(params?.name)] : undefined;
    if (body === undefined) throw rpcError(RPC.methodNotFound, `${method} is not served`);
    return body(params?.arguments, context);
  };
}

/** A handler that answers as the fixture servers do. */
export function fixtureHandler(serverName: string): InProcessHandler {
  const state: ToolState = { count: 0, cancelled: [] };
  let calls = 0;
  return ({ method, params = {} }, { signal, notify }) => {
    calls += 1;
    const id = calls;
    signal.addEventListener('abort', () => state.cancelled.push(id));
    return answer({ method, params }, defaultOptions, {
      serverName,
      state,
      client: { declared: {}, received: [] },
      signal,
      progressToken: progressTokenOf({ params }),
      notify: (name, params = {}) => notify(name, JSON.parse(JSON.stringify(params))),
      request: () => Promise.reject(new Error('a function has nobody to ask')),
    });
  };
}

/** The error that a handler throws to answer with a JSON-RPC error. */
export function rpcError(code: number, message: string, data?: JsonValue) {
  return data === undefined ? { code, message } : { code, message, data };
}

/** A tool result with one text. */
export function text(value: string): JsonObject {
  return { content: [{ type: 'text', text: value }] };
}

/** A tool whose calls wait until the spec answers them, oldest first. */
export class HeldTool {
  readonly #waiting: ((result: JsonObject) => void)[] = [];
  /** How many calls were cancelled. */
  cancelled = 0;

  readonly body: ToolBody = (_, { signal }) =>
    new Promise((resolve) => {
      this.#waiting.push(resolve);
      signal.addEventListener('abort', () => {
        this.cancelled += 1;
      });
    });

  /** The number of unanswered calls. */
  get waiting(): number {
    return this.#waiting.length;
  }

  answer(result: JsonObject = text('held')): void {
    this.#waiting.shift()?.(result);
  }

  answerAll(): void {
    while (this.waiting > 0) this.answer();
  }
}

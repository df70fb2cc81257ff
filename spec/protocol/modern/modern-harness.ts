// Harness of the modern endpoint: scripted backends, and clients that write requests of the revision. CallsWithQuestions is the
// real one.

import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../src/domain/json/json.ts';
import type { Handshake } from '../../../src/domain/mcp/mcp.ts';
import { byteShares, memoryBounds } from '../../../src/domain/memory/held-bytes.ts';
import { newSessionId } from '../../../src/domain/nodes/life.ts';
import { encodeHeader } from '../../../src/domain/text.ts';
import { Endpoint } from '../../../src/protocol/endpoint.ts';
import type { McpRequest } from '../../../src/protocol/endpoint-types.ts';
import { RpcFailure } from '../../../src/protocol/rpc.ts';
import { callsWithQuestions } from '../../helpers/backends/calls-with-questions.ts';
import { MODERN_HANDSHAKE } from '../../helpers/backends/scripted-transport.ts';
import { simulatedClock } from '../../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';
import { RecordedReply } from '../recorded-reply.ts';
import { ScriptedBackends } from '../scripted-backends.ts';

export const VERSION = '2026-07-28';
export const KEY = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
} as const;

export const HANDSHAKE: Handshake = {
  ...MODERN_HANDSHAKE,
  capabilities: { tools: { listChanged: true }, resources: { listChanged: true, subscribe: true } },
};
export const SERVER_INFO = HANDSHAKE.serverInfo;

/** What a client sends, apart from what every request has. */
export interface Said {
  readonly id?: unknown;
  readonly owner?: string;
  readonly capabilities?: JsonObject;
  readonly meta?: JsonObject;
  /** Added to the headers that the request should have; undefined removes one. */
  readonly headers?: Record<string, string | undefined>;
  readonly template?: string | undefined;
}

/** An endpoint, its backends, and clients that speak to it. */
export function modernHarness(stateKey: Buffer = Buffer.alloc(32, 1)) {
  const backends = new ScriptedBackends();
  backends.known = [HANDSHAKE];
  const scheduler = untimedScheduler();
  const askingCalls = callsWithQuestions(scheduler);
  const faults: unknown[] = [];
  const declarations = byteShares(memoryBounds(0).declarations);
  const endpoint = new Endpoint({
    backends: () => backends,
    askingCalls,
    newSessionId: () => newSessionId('life-one'),
    stateKeys: [stateKey],
    onFault: (error) => faults.push(error),
    scheduler,
    clock: simulatedClock,
    declarations,
    useOnce: async () => async () => {},
  });
  const charges: number[] = [];
  const harness = {
    backends,
    askingCalls,
    declarations,
    endpoint,
    charges,
    /** Reported errors of the gateway itself. */
    faults,
    /** The reported ends of requests. */
    ends: [] as string[],
    charge: (_requests: number): void | Promise<void> => {},

    /** Sends a body as it is. */
    async post(
      body: unknown,
      headers: Record<string, string | undefined>,
      said: Said = {},
    ): Promise<RecordedReply> {
      const reply = new RecordedReply();
      await harness.handle({ method: 'POST', body, headers }, reply, said);
      return reply;
    },

    async handle(
      sent: {
        readonly method: McpRequest['method'];
        readonly body?: unknown;
        readonly headers?: McpRequest['headers'];
      },
      reply: RecordedReply,
      { owner = 'ann', ...said }: Said = {},
    ): Promise<void> {
      const { body } = sent;
      const text = typeof body === 'string' ? body : JSON.stringify(body ?? '');
      const request: McpRequest = {
        method: sent.method,
        headers: sent.headers ?? {},
        body: sent.method === 'POST' ? Buffer.from(text) : Buffer.alloc(0),
        pathName: 'template' in said ? said.template : 't',
        principal: { ...ANONYMOUS, id: owner },
        report: () => ({ ended: (end) => harness.ends.push(end.kind) }),
        requireRoom: () => {},
        consumeRateLimit: (requests) => {
          charges.push(requests);
          return harness.charge(requests);
        },
      };
      try {
        await endpoint.handle(request, reply);
      } catch (thrown) {
        if (!(thrown instanceof RpcFailure)) throw thrown;
        reply.json(thrown.status, thrown.body, thrown.headers); // as the HTTP room does
      }
    },

    /** Sends a request with all it should have. */
    send(method: string, params: JsonObject = {}, said: Said = {}): Promise<RecordedReply> {
      const { id = 1, capabilities = {}, meta = {} } = said;
      const own = isJsonObject(params._meta) ? params._meta : {};
      const _meta = { [KEY.version]: VERSION, [KEY.capabilities]: capabilities, ...meta, ...own };
      const body = { jsonrpc: '2.0', id, method, params: { ...params, _meta } };
      return harness.post(body, { ...headersFor(method, params), ...said.headers }, said);
    },

    /** Sends a request and has it answered with a result; what the client got. */
    async call(method: string, params: JsonObject, result: unknown, instanceId = 'a', said: Said = {}) {
      const reply = await harness.send(method, params, said);
      backends.last.result(result, instanceId);
      return resultOf(reply);
    },
  };
  return harness;
}

/** The headers that a request should have. */
export function headersFor(method: string, params: JsonObject = {}): Record<string, string> {
  const named = method.startsWith('tasks/') ? params.taskId : (params.name ?? params.uri);
  return {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'mcp-protocol-version': VERSION,
    'mcp-method': method,
    ...(typeof named === 'string' ? { 'mcp-name': encodeHeader(named) } : {}),
  };
}

/** What JSON.parse reads and JSON.stringify cannot write. */
export function nestedTooDeeply(): JsonValue {
  const depth = 100_000;
  return JSON.parse('['.repeat(depth) + ']'.repeat(depth));
}

/** The result in a JSON answer. */
export function resultOf({ message }: RecordedReply): JsonObject {
  if (!isJsonObject(message.result)) throw new Error(`there is no result in ${JSON.stringify(message)}`);
  return message.result;
}

/** Status and code of an answer: `200`, or `400 -32602`. */
export function outcomeOf(reply: RecordedReply): string {
  const error = reply.body === undefined ? undefined : reply.message.error;
  return isJsonObject(error) ? `${reply.status} ${String(error.code)}` : String(reply.status);
}

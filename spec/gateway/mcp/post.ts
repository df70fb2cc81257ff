// POSTs of MCP clients of both eras to the endpoint of a gateway in this process, and their answers, however they are framed.

import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { Gateway } from '../../../src/gateway/gateway.ts';
import type { McpRequest } from '../../../src/protocol/endpoint-types.ts';
import { rpcFailureOf } from '../../../src/protocol/rpc.ts';
import { until } from '../../helpers/eventually.ts';
import { headersFor, KEY, VERSION } from '../../protocol/modern/modern-harness.ts';
import { parsed, RecordedReply } from '../../protocol/recorded-reply.ts';

type Endpoint = Pick<Gateway, 'mcp'>;

/** A message and its sender. */
export interface Post {
  /** Undefined: to all templates together. */
  readonly template: string | undefined;
  /** Undefined for a GET. */
  readonly message?: JsonObject;
  readonly headers?: object;
  /** Default: anonymous. */
  readonly principal?: Principal;
  /** Default: as it is. */
  readonly write?: (body: string) => string;
}

/** One HTTP request. An error of the endpoint is its answer. `handled` resolves when the endpoint has accepted it. */
export function begin({ mcp }: Endpoint, method: McpRequest['method'], post: Post) {
  const { template: pathName, message, headers, principal = ANONYMOUS, write = (body) => body } = post;
  const reply = new RecordedReply();
  const id = String(message?.method).startsWith('notifications/') ? undefined : 1;
  const body = message === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id, ...message });
  const types = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
  const request: McpRequest = {
    ...{ method, pathName, principal, headers: { ...types, ...headers } },
    ...{
      body: Buffer.from(write(body)),
      report: () => ({ ended: () => {} }),
      requireRoom: () => {},
      consumeRateLimit: () => {},
    },
  };
  const handle = async () => mcp.handle(request, reply);
  const handled = handle().catch((thrown) => {
    const { status, body } = rpcFailureOf(thrown);
    reply.json(status, body);
  });
  return { reply, handled };
}

/** The same, once the endpoint has accepted it. */
export async function send(...request: Parameters<typeof begin>): Promise<RecordedReply> {
  const { reply, handled } = begin(...request);
  await handled;
  return reply;
}

/** Resolves when the POST is answered. */
export async function postTo(endpoint: Endpoint, post: Post) {
  const reply = await send(endpoint, 'POST', post);
  await until(() => reply.isAnswered && reply.opened?.isEnded !== false);
  const { status, headers, log } = reply;
  return { status, headers, instanceId: log.instanceId, answer: answerIn(reply) };
}

/** The message that answers the request. */
export function answerIn({ body, opened }: RecordedReply): JsonObject {
  return parsed(body ?? opened?.events.at(-1)?.data ?? '{}');
}

/** A request of the modern era, with the headers that belong to it. */
export function modernRequest(method: string, params: JsonObject = {}, meta: JsonObject = {}) {
  const _meta = { [KEY.version]: VERSION, [KEY.capabilities]: {}, ...meta };
  return { message: { method, params: { ...params, _meta } }, headers: headersFor(method, params) };
}

/** `initialize` of the legacy era. */
export function initialize(capabilities: JsonObject = {}) {
  const clientInfo = { name: 'spec', version: '1' };
  return { method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities, clientInfo } };
}

/** Opens a session of the legacy era; the header of its requests. */
export async function openSession(
  endpoint: Endpoint,
  template: string | undefined,
  principal: Principal = ANONYMOUS,
  capabilities?: JsonObject,
) {
  const message = initialize(capabilities);
  const { status, headers } = await postTo(endpoint, { template, message, principal });
  if (status !== 200) throw new Error(`no session: ${status}`);
  return { 'mcp-session-id': headers[headers.indexOf('Mcp-Session-Id') + 1] ?? '' };
}

/** Lets simulated time pass in steps of 10 ms, and what follows from each. */
export async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) {
    mock.timers.tick(10);
    await turn();
  }
}

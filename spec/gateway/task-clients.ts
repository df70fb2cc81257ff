// Clients that begin tasks and ask for them, in the words of either era, without HTTP in between.

import { setTimeout as delay } from 'node:timers/promises';
import { ANONYMOUS } from '../../src/domain/account.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Gateway } from '../../src/gateway.ts';
import type { McpRequest } from '../../src/protocol/endpoint-types.ts';
import { failureOf } from '../../src/protocol/rpc.ts';
import { parsed, RecordedReply } from '../protocol/recorded-reply.ts';

/** Who asks: the id, or that and the templates that he may use. */
export type Asking = string | { readonly id: string; readonly templates: ReadonlySet<string> };

/** One POST, answered. */
async function post(
  { mcp }: Gateway,
  template: string | undefined,
  message: JsonObject,
  headers: object,
  owner: Asking = 'ann',
) {
  const reply = new RecordedReply();
  const request: McpRequest = {
    method: 'POST',
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...headers,
    },
    body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })),
    template,
    principal: { ...ANONYMOUS, ...(typeof owner === 'string' ? { id: owner } : owner) },
    consumeRateLimit: () => {},
  };
  try {
    await mcp.handle(request, reply);
  } catch (thrown) {
    const { status, body } = failureOf(thrown);
    reply.json(status, body);
  }
  while (reply.body === undefined && reply.opened?.isEnded !== true) await delay(1);
  const answer = parsed(reply.body ?? reply.opened?.events.at(-1)?.data ?? '{}');
  return {
    headers: reply.headers,
    instanceId: reply.instanceId,
    result: Object(answer.result),
    code: Object(answer.error).code,
  };
}

/** One request of a client without a session. */
export function modern(
  gateway: Gateway,
  template: string | undefined,
  method: string,
  params: JsonObject,
  owner?: Asking,
) {
  const meta = (name: string) => `io.modelcontextprotocol/${name}`;
  const _meta = { [meta('protocolVersion')]: '2026-07-28', [meta('clientCapabilities')]: {} };
  const headers = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    'mcp-name': String(params.taskId ?? params.name),
  };
  return post(gateway, template, { method, params: { ...params, _meta } }, headers, owner);
}

/** Opens a session; what asks in it. With the default capabilities a modern server may begin tasks unasked. */
export async function legacy(
  gateway: Gateway,
  template: string | undefined,
  owner?: Asking,
  capabilities: JsonObject = { extensions: { 'io.modelcontextprotocol/tasks': {} } },
) {
  const clientInfo = { name: 'spec', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities, clientInfo };
  const { headers } = await post(gateway, template, { method: 'initialize', params }, {}, owner);
  const session = { 'mcp-session-id': headers[headers.indexOf('Mcp-Session-Id') + 1] };
  return (method: string, asked: JsonObject) =>
    post(gateway, template, { method, params: asked }, session, owner);
}

// The MCP endpoint of one gateway: reads the body of a POST, finds its protocol era, and passes it to the endpoint of
// that era. The body decides about the era; the header counts only when the body names no revision. Sources: MCP
// 2026-07-28 basic/versioning#compatibility-matrix; `classifyInboundRequest` of the SDK.

import { isJsonObject } from '../domain/json/json.ts';
import type { Notification } from '../domain/mcp/client.ts';
import { isModernVersion, META } from '../domain/mcp/mcp.ts';
import type { HttpHeaders } from '../domain/text.ts';
import { type ClientRequest, readBody, readClientMessage } from './client-message.ts';
import type { EndpointOptions, McpEndpoint, McpRequest, ReplyWriter } from './endpoint-types.ts';
import { checkPostTypes, headerMismatch, headerOf } from './headers.ts';
import { KnownTasks } from './known-tasks.ts';
import { LegacyEndpoint } from './legacy/legacy-endpoint.ts';
import { LegacySse, opensSse } from './legacy/legacy-sse.ts';
import { ModernEndpoint } from './modern/modern-endpoint.ts';
import { invalidRequest, RpcFailure, refused } from './rpc.ts';

/** The endpoint for both eras. The caller closes it. */
export class Endpoint implements McpEndpoint {
  readonly tasks: KnownTasks;
  readonly #backends: EndpointOptions['backends'];
  readonly #legacy: LegacyEndpoint;
  readonly #sse: LegacySse;
  readonly #modern: ModernEndpoint;

  constructor(options: EndpointOptions) {
    this.#backends = options.backends;
    this.tasks = new KnownTasks(options.clock, options.views);
    const { tasks } = this;
    this.#legacy = new LegacyEndpoint({ ...options, tasks });
    this.#sse = new LegacySse(this.#legacy, options);
    this.#modern = new ModernEndpoint({ ...options, tasks });
  }

  handle(request: McpRequest, reply: ReplyWriter): void | Promise<void> {
    const backends = this.#backends(request.pathName);
    if (request.method === 'POST') {
      const { sseSessionId: id } = request;
      if (id !== undefined) return this.#sse.post(id, { request, reply, backends });
      checkPostTypes(request.headers);
      const parsed = readBody(request.body);
      const message = readModernMessage(parsed, request.headers);
      const served = { request, reply, backends };
      return message === undefined ? this.#legacy.post(parsed, served) : this.#modern.post(message, served);
    }
    const opening = opensSse(request);
    if (opening !== undefined) return this.#sse.open(opening, { request, reply, backends });
    if (request.headers['mcp-session-id'] === undefined && namesModern(request.headers)) {
      // The modern era has no GET and no DELETE.
      const { error } = refused(405, 'Method not allowed.');
      throw new RpcFailure(405, error, { headers: ['Allow', 'POST'] });
    }
    if (request.method === 'GET') return this.#legacy.get({ request, reply, backends });
    return this.#legacy.delete({ request, reply, backends });
  }

  dismiss(): Promise<void> {
    return this.#legacy.dismiss();
  }

  async close(): Promise<void> {
    await Promise.all([this.#legacy.close(), this.#modern.close()]);
    await this.#sse.close(); // its streams carry the last answers of the legacy endpoint
  }
}

/**
 * The message of the modern era in the JSON of one POST; undefined for the legacy endpoint, which reads its messages itself.
 * Throws RpcFailure 400: -32600 for JSON that the modern era does not allow (arrays, answers, anything but a message), -32020 for
 * a legacy handshake with a header of the modern era.
 */
export function readModernMessage(
  parsed: unknown,
  headers: HttpHeaders,
): ClientRequest | Notification | undefined {
  const isHeaderModern = namesModern(headers);
  if (Array.isArray(parsed)) {
    if (!isHeaderModern && parsed.every((message) => declaredVersionOf(message) === undefined))
      return undefined;
    throw invalidRequest('batches are not part of this protocol revision');
  }
  if (isHandshake(parsed)) {
    if (!isHeaderModern) return undefined;
    throw headerMismatch('MCP-Protocol-Version', 'names a revision without `initialize`');
  }
  if (!isHeaderModern && declaredVersionOf(parsed) === undefined) return undefined;
  const message = readClientMessage(parsed);
  if (message.kind === 'answer') throw invalidRequest('answers are not part of this protocol revision');
  return message;
}

/** True when the header names a revision of the modern era, supported or not. */
function namesModern(headers: HttpHeaders): boolean {
  const version = headerOf(headers, 'mcp-protocol-version');
  return version !== undefined && isModernVersion(version);
}

/** The revision that `_meta` names; undefined in the legacy era, which has none there. */
function declaredVersionOf(message: unknown): unknown {
  const params = isJsonObject(message) ? message.params : undefined;
  const meta = isJsonObject(params) ? params._meta : undefined;
  return isJsonObject(meta) ? meta[META.protocolVersion] : undefined;
}

/**
 * True for an `initialize` of the legacy era; not if its `_meta` names a modern revision, which has no such
 * method.
 */
function isHandshake(message: unknown): boolean {
  if (!isJsonObject(message) || message.method !== 'initialize') return false;
  const declared = declaredVersionOf(message);
  return typeof declared !== 'string' || !isModernVersion(declared);
}

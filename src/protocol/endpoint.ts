// The MCP endpoint of one gateway: reads the body of a POST, decides its protocol era, and hands it to the endpoint of that era.

import { TaskScheduler } from '../domain/task-scheduler.ts';
import { classifyRequest, namesModern } from './classify.ts';
import type { McpEndpoint, McpReply, McpRequest } from './endpoint-types.ts';
import { type FaultListener, nonThrowing } from './endpoint-types.ts';
import { checkPostTypes } from './headers.ts';
import { LegacyEndpoint } from './legacy/legacy-endpoint.ts';
import { LegacySse, opensSse } from './legacy/legacy-sse.ts';
import type { ServerInfo } from './modern/modern-discover.ts';
import { ModernEndpoint } from './modern/modern-endpoint.ts';
import type { Backends, CallParking } from './ports.ts';
import { readBody } from './read-body.ts';
import { RpcFailure, refused } from './rpc-failure.ts';
import { TaskFinder } from './task-finder.ts';

/** Dependencies of the endpoint. */
export interface EndpointOptions {
  /** The backends of a path: one template, or all templates when it names none. Throws GatewayError when there are none. */
  readonly backends: (template: string | undefined) => Backends;
  readonly parked: CallParking;
  /** At least 32 random bytes; nodes that share the key open texts that another one sealed. */
  readonly sealKey: Buffer;
  /** The gateway's own name, for several servers behind one path. */
  readonly serverInfo: ServerInfo;
  /**
   * Receives internal errors that end a request under way, or keep a message from being written, since no answer shows them.
   * Errors before that are thrown. What it throws itself is dropped. Default: none.
   */
  readonly onFault?: FaultListener;
  /** Spreads the end of many streams over turns of the event loop. Default: one of its own. */
  readonly scheduler?: TaskScheduler;
  /** Most bytes that are buffered for clients that may reconnect. Default: 256 MiB. */
  readonly bufferedBytes?: number | undefined;
}

/** Makes the endpoint. The caller closes it. */
export function createEndpoint(options: EndpointOptions): McpEndpoint {
  return new Endpoint(options);
}

class Endpoint implements McpEndpoint {
  readonly #backends: EndpointOptions['backends'];
  readonly #legacy: LegacyEndpoint;
  readonly #sse: LegacySse;
  readonly #modern: ModernEndpoint;

  constructor({ backends, scheduler = new TaskScheduler(), ...options }: EndpointOptions) {
    this.#backends = backends;
    const onFault = nonThrowing(options.onFault);
    const tasks = new TaskFinder();
    this.#legacy = new LegacyEndpoint({ onFault, scheduler, tasks, bufferedBytes: options.bufferedBytes });
    this.#sse = new LegacySse(this.#legacy, { onFault, scheduler });
    this.#modern = new ModernEndpoint({ ...options, onFault, scheduler, tasks });
  }

  handle(request: McpRequest, reply: McpReply): void | Promise<void> {
    const backends = this.#backends(request.template);
    if (request.method === 'POST') {
      const { sseConnection: id } = request;
      if (id !== undefined) return this.#sse.post(id, request, reply, backends);
      return this.#post(request, reply, backends);
    }
    const opening = opensSse(request);
    if (opening !== undefined) return this.#sse.open(opening, request, reply, backends);
    if (request.headers['mcp-session-id'] === undefined && namesModern(request.headers)) throw onlyPost();
    if (request.method === 'GET') return this.#legacy.get(request, reply, backends);
    return this.#legacy.delete(request, reply, backends);
  }

  async close(): Promise<void> {
    await Promise.all([this.#legacy.close(), this.#modern.close()]);
    await this.#sse.close(); // after the answers that it carries
  }

  #post(request: McpRequest, reply: McpReply, backends: Backends): void | Promise<void> {
    checkPostTypes(request.headers);
    const parsed = readBody(request.body);
    const classified = classifyRequest(parsed, request.headers);
    if (classified.era === 'legacy') return this.#legacy.post(parsed, request, reply, backends);
    return this.#modern.post(classified.message, request, reply, backends);
  }
}

/** The modern era has no GET and no DELETE. */
function onlyPost(): RpcFailure {
  const { error } = refused(405, 'Method not allowed.');
  return new RpcFailure(405, error, null, ['Allow', 'POST']);
}

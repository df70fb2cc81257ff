// A fake MCP endpoint that records its requests, for the specs of the middlewares around the endpoint.

import { systemClock } from '../../src/domain/time/clock.ts';
import type { McpEndpoint, McpRequest } from '../../src/protocol/endpoint-types.ts';
import { KnownTasks } from '../../src/protocol/known-tasks.ts';

/** Answers POST and DELETE with an empty result, a message of HTTP+SSE with 202, and GET with a stream that ends at once. */
export function fakeMcp(): McpEndpoint & { readonly requests: readonly McpRequest[] } {
  const requests: McpRequest[] = [];
  return {
    requests,
    tasks: new KnownTasks({ ...systemClock, now: () => 0 }),
    handle: async (request, reply) => {
      requests.push(request);
      const { method, sseSessionId, consumeRateLimit } = request;
      if (method === 'GET') return reply.stream().end();
      if (method === 'DELETE') return reply.empty(200);
      await consumeRateLimit(1);
      if (sseSessionId !== undefined) reply.empty(202);
      else reply.json(200, '{"jsonrpc":"2.0","id":1,"result":{}}');
    },
    dismiss: async () => {},
    close: async () => {},
  };
}

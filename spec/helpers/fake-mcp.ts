// An MCP endpoint that says what a spec tells it to, for the specs of what stands around the endpoint.

import type { McpEndpoint, McpReply, McpRequest } from '../../src/protocol/endpoint-types.ts';

/** An endpoint and what it was asked. */
export interface FakeMcp extends McpEndpoint {
  readonly requests: readonly McpRequest[];
  /** How it answers from now on. */
  answer: (request: McpRequest, reply: McpReply) => void | Promise<void>;
}

/** Answers every POST and DELETE with an empty result, a message of HTTP+SSE with 202, and GET with a stream that ends at once. */
export function fakeMcp(answer: FakeMcp['answer'] = politely): FakeMcp {
  const requests: McpRequest[] = [];
  const fake: FakeMcp = {
    requests,
    answer,
    handle: (request, reply) => {
      requests.push(request);
      return fake.answer(request, reply);
    },
    close: async () => {},
  };
  return fake;
}

async function politely(
  { method, sseConnection, consumeRateLimit }: McpRequest,
  reply: McpReply,
): Promise<void> {
  if (method === 'GET') reply.stream().end();
  else if (method === 'DELETE') reply.empty(200);
  else {
    await consumeRateLimit(1);
    if (sseConnection !== undefined) reply.empty(202);
    else reply.json(200, '{"jsonrpc":"2.0","id":1,"result":{}}');
  }
}

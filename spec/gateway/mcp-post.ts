// One POST to the MCP endpoint of a gateway in this process, and the message that answers it, however it is framed.

import { setImmediate as turn } from 'node:timers/promises';
import { ANONYMOUS, type Principal } from '../../src/domain/account.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Gateway } from '../../src/gateway.ts';
import type { McpRequest } from '../../src/protocol/endpoint-types.ts';
import { failureOf } from '../../src/protocol/rpc.ts';
import { parsed, RecordedReply } from '../protocol/recorded-reply.ts';

/** A message and its sender. */
export interface Post {
  /** Undefined: to all templates together. */
  readonly template: string | undefined;
  readonly message: JsonObject;
  readonly headers?: Record<string, string>;
  /** Default: nobody in particular. */
  readonly principal?: Principal;
}

/** Resolves when it is answered, by an error of the endpoint, too. */
export async function postTo(
  { mcp }: Pick<Gateway, 'mcp'>,
  { template, message, headers, principal = ANONYMOUS }: Post,
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
    principal,
    consumeRateLimit: () => {},
  };
  try {
    await mcp.handle(request, reply);
  } catch (thrown) {
    const { status, body } = failureOf(thrown);
    reply.json(status, body);
  }
  while (!reply.isAnswered) await turn();
  const body = reply.body ?? reply.opened?.events.at(-1)?.data ?? '{}';
  return { status: reply.status, headers: reply.headers, answer: parsed(body) };
}

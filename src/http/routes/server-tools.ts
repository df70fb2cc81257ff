// Calls a tool of one server, without balancing and failover. A result that is an error becomes an error answer.

import Type from 'typebox';
import { invalidToolArguments, refusedArguments, toolExecutionFailed } from '../../domain/answer-errors.ts';
import { backendUnavailable } from '../../domain/error-catalogue.ts';
import { atInstance, type GatewayError } from '../../domain/errors.ts';
import { isJsonObject, type JsonText } from '../../domain/json.ts';
import { resultReply } from '../exchange-reply.ts';
import { bytes, type Reply } from '../reply.ts';
import { defineRoute, FROM_BACKEND, type Route } from '../route.ts';
import { anyObject, CLOSED, number, rounded, text } from '../schemas.ts';
import { visibleServer } from '../visible.ts';

const CallServerToolBody = Type.Object(
  {
    server_id: Type.String({ minLength: 1, examples: ['everything-1'] }),
    tool_name: Type.String({ minLength: 1, examples: ['echo'] }),
    arguments: Type.Optional(anyObject({ message: 'hello' })),
  },
  CLOSED,
);

const ServerToolResult = Type.Object({
  result: anyObject({ content: [{ type: 'text', text: 'Echo: hello' }] }),
  server_id: text('everything-1'),
  tool_name: text('echo'),
  execution_time_ms: number(12.5),
});

export const serverToolRoutes: readonly Route[] = [
  defineRoute('POST', '/tools/call', {
    summary: 'Call a tool of one server',
    scope: 'tools:call',
    reader: 'direct',
    request: { body: CallServerToolBody },
    answers: { 200: { description: 'The MCP result, and how long it took', body: ServerToolResult } },
    errors: [...FROM_BACKEND, 'SERVER_NOT_FOUND', 'TOOL_NOT_FOUND', 'INVALID_TOOL_ARGUMENTS'],
    handler: ({ body, fields, principal, request }, { gateway }) => {
      const { server_id, tool_name } = body;
      const { template, id: instanceId } = visibleServer(gateway, principal, server_id).definition;
      const call = {
        method: 'tools/call',
        params: { name: tool_name, arguments: fields.arguments ?? {} },
      };
      const startMs = performance.now();
      const replyOf = (result: JsonText): Reply => {
        const failure = failureOf(tool_name, result);
        if (failure !== undefined) throw atInstance(failure, instanceId);
        const execution_time_ms = rounded(performance.now() - startMs, 3);
        const others = JSON.stringify({ server_id, tool_name, execution_time_ms });
        const parts = ['{"result":', result.bytes, `,${others.slice(1)}`];
        return bytes(200, Buffer.concat(parts.map((part) => Buffer.from(part))), { instanceId });
      };
      return resultReply({ gateway, template, instanceId }, call, request, replyOf);
    },
  }),
];

/** The error of a failed call; undefined for a successful one. */
function failureOf(tool: string, result: JsonText): GatewayError | undefined {
  const value = parsed(result);
  if (!isJsonObject(value) || value.isError !== true) return undefined;
  const refused = refusedArguments(value);
  return refused === undefined ? toolExecutionFailed(tool, { result }) : invalidToolArguments(tool, refused);
}

/** Transports do not verify that a result is JSON. */
function parsed(result: JsonText): unknown {
  try {
    return result.value;
  } catch (cause) {
    throw backendUnavailable('its answer is not JSON', { delivered: 'yes', cause });
  }
}

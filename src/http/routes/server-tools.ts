// Calling a tool of one certain server: no balancing, no failover. Source: spec, surface B; decisions, "Errors" for what
// becomes of a result that is an error.

import Type from 'typebox';
import { toolExecutionFailed } from '../../domain/answer-errors.ts';
import { atInstance } from '../../domain/failures.ts';
import { isJsonObject } from '../../domain/json.ts';
import { ClientGone } from '../client-gone.ts';
import { json } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { FROM_BACKEND } from '../route-errors.ts';
import { AnyObject, CLOSED } from '../schemas.ts';
import { rounded } from '../views/rounded.ts';
import { visibleServer } from '../visible.ts';

const CallServerToolBody = Type.Object(
  {
    server_id: Type.String({ minLength: 1 }),
    tool_name: Type.String({ minLength: 1 }),
    arguments: Type.Optional(AnyObject),
  },
  CLOSED,
);

const ServerToolResult = Type.Object({
  result: AnyObject,
  server_id: Type.String(),
  tool_name: Type.String(),
  execution_time_ms: Type.Number(),
});

export const serverToolRoutes: readonly Route[] = [
  defineRoute({
    method: 'POST',
    path: '/tools/call',
    summary: 'Call a tool of one server',
    scope: 'tools:call',
    reader: 'direct',
    request: { body: CallServerToolBody },
    answers: { 200: { description: 'The MCP result, and how long it took', body: ServerToolResult } },
    errors: [...FROM_BACKEND, 'SERVER_NOT_FOUND', 'TOOL_NOT_FOUND', 'INVALID_TOOL_ARGUMENTS'],
    handler: async ({ body, principal, request }, { gateway }) => {
      const { server_id, tool_name, arguments: toolArguments = {} } = body;
      const { template, id: instanceId } = visibleServer(gateway, principal, server_id).definition;
      const { signal, callerId: caller } = request;
      const startMs = performance.now();
      const called = gateway.call(template, tool_name, toolArguments, { instanceId, signal, caller });
      const { result } = await called.catch((thrown: unknown) => {
        throw signal.aborted ? new ClientGone() : thrown;
      });
      if (isJsonObject(result) && result.isError === true) {
        throw atInstance(toolExecutionFailed(tool_name, { result }), instanceId);
      }
      const execution_time_ms = rounded(performance.now() - startMs, 3);
      return json(200, { result, server_id, tool_name, execution_time_ms }, { instanceId });
    },
  }),
];

// The last step of a matched request: gathers its input, runs the route and writes the reply.

import { NOBODY } from '../../domain/account.ts';
import type { HttpContext, RouteContext, RouteMiddleware } from '../context.ts';
import { HttpRequest } from '../context.ts';
import type { EventStreams } from '../event-stream.ts';
import { HttpMcpReply } from '../mcp-reply.ts';
import type { Proxies } from '../proxies.ts';
import type { Reply } from '../reply.ts';
import { respond } from '../respond.ts';
import type { RawInput, Route, Services } from '../route.ts';

/** Makes the handling middleware of one route. */
export function handle(
  route: Route,
  services: Services,
  proxies: Proxies,
  streams: EventStreams,
): RouteMiddleware {
  return async (context) => {
    const reply = await route.run(inputOf(context, proxies), services);
    await write(context, reply, streams);
  };
}

/** The body is handed over: what it was parsed into is not kept while the answer is awaited. */
function inputOf(context: RouteContext, proxies: Proxies): RawInput {
  const { state, params, querystring: query } = context;
  state.template = params.template;
  const { body, bodyFields, principal = NOBODY } = state;
  state.body = undefined;
  state.bodyFields = undefined;
  return { params, query, body, bodyFields, request: new HttpRequest(context, proxies), principal };
}

function write(context: HttpContext, reply: Reply, streams: EventStreams): Promise<void> | void {
  if (reply.kind === 'stream') return streams.write(context, reply.events$, reply.tracker);
  if (reply.kind === 'conversation') return reply.talk(new HttpMcpReply(context, streams));
  if (reply.trail !== undefined) context.state.trail = reply.trail;
  respond(context, reply);
  streams.unread.count(context);
}

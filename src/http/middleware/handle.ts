// The last step of a matched request: gathers its input, runs the route and writes the reply.

import { NOBODY } from '../../domain/account.ts';
import type { HttpContext, RouteMiddleware } from '../context.ts';
import type { EventStreams } from '../event-stream.ts';
import { HttpMcpReply } from '../mcp-reply.ts';
import type { Proxies } from '../proxies.ts';
import type { Reply } from '../reply.ts';
import { RequestFacts } from '../request-facts.ts';
import { respond } from '../respond.ts';
import type { Route, Services } from '../route.ts';

/** Makes the handling middleware of one route. */
export function handle(
  route: Route,
  services: Services,
  proxies: Proxies,
  streams: EventStreams,
): RouteMiddleware {
  return async (context) => {
    const { state, params, querystring: query } = context;
    state.template = params.template;
    const request = new RequestFacts(context, proxies);
    const { body, principal = NOBODY } = state;
    const reply = await route.run({ params, query, body, request, principal }, services);
    await write(context, reply, streams);
  };
}

function write(context: HttpContext, reply: Reply, streams: EventStreams): Promise<void> | void {
  if (reply.kind === 'stream') return streams.write(context, reply.events$);
  if (reply.kind === 'conversation') return reply.talk(new HttpMcpReply(context, streams));
  if (reply.trail !== undefined) context.state.trail = reply.trail;
  respond(context, reply);
}

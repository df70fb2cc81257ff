// Gives each request its id: the one the client sent when it is sane, else a new one. respond.ts sends it back.

import { randomUUID } from 'node:crypto';
import type { HttpMiddleware } from '../request.ts';

/** Header that carries the id both ways, in the lower case Node uses. */
const REQUEST_ID_HEADER = 'x-request-id';

/** What may be repeated in headers, bodies and logs without a second thought. */
const SANE = /^[A-Za-z0-9._-]{1,128}$/;

/** Sets `state.requestId`. Source: decisions, "Errors". */
export function requestId(): HttpMiddleware {
  return (context, next) => {
    const sent = context.req.headers[REQUEST_ID_HEADER];
    context.state.requestId = typeof sent === 'string' && SANE.test(sent) ? sent : randomUUID();
    return next();
  };
}

// Sets the id of each request: a valid one of the client, else a new one. respond.ts returns it.

import { randomUUID } from 'node:crypto';
import type { HttpMiddleware } from '../request.ts';

/** In lower case, as Node has it. */
const REQUEST_ID_HEADER = 'x-request-id';

/** Ids that are safe in headers, bodies and logs. */
const VALID = /^[A-Za-z0-9._-]{1,128}$/;

/** Sets `state.requestId`. */
export function requestId(): HttpMiddleware {
  return (context, next) => {
    const sent = context.req.headers[REQUEST_ID_HEADER];
    context.state.requestId = typeof sent === 'string' && VALID.test(sent) ? sent : randomUUID();
    return next();
  };
}

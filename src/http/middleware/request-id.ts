// Sets `state.requestId`: a valid id of the client, else a new one. respond.ts returns it.

import { randomUUID } from 'node:crypto';
import type { HttpMiddleware } from '../request.ts';

/** Ids that are safe in headers, bodies and logs. */
const VALID = /^[A-Za-z0-9._-]{1,128}$/;

export function requestId(): HttpMiddleware {
  return (context, next) => {
    const sent = context.req.headers['x-request-id'];
    context.state.requestId = typeof sent === 'string' && VALID.test(sent) ? sent : randomUUID();
    return next();
  };
}

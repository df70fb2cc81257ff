// Writes a reply to the socket.
// It bypasses koa's own response (`ctx.respond = false`): one writeHead and one end cost 19.5 us per call of an empty
// gateway, koa's setters and its look at the body 23. Event streams are written by event-stream.ts.

import { latin1Of, SMALL_BYTES } from './bytes-as-text.ts';
import { commonHeaders } from './common-headers.ts';
import type { HttpContext } from './context.ts';
import type { BytesReply, EmptyReply } from './reply.ts';
import { limitWriteTime } from './write-timeout.ts';

/** Answers. Does nothing when the answer has begun or the connection is gone. */
export function respond(context: HttpContext, reply: BytesReply | EmptyReply): void {
  const { res: response, state } = context;
  context.respond = false;
  if (response.headersSent || response.destroyed) return;
  const headers = commonHeaders(state);
  if (reply.instanceId !== undefined) {
    state.instanceId = reply.instanceId;
    headers.push('X-Instance-ID', reply.instanceId);
  }
  if (reply.headers !== undefined) headers.push(...reply.headers);
  if (reply.kind === 'empty') {
    // Node cannot know yet that nothing follows, and would begin a body of pieces.
    if (!BODYLESS.includes(reply.status)) headers.push('Content-Length', '0');
    response.writeHead(reply.status, headers).end();
    return;
  }
  const { bytes } = reply;
  const length = typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.byteLength;
  headers.push('Content-Type', reply.type ?? 'application/json', 'Content-Length', String(length));
  response.writeHead(reply.status, headers);
  if (typeof bytes === 'string' || length > SMALL_BYTES) response.end(bytes);
  else response.end(latin1Of(bytes), 'latin1');
  limitWriteTime(response);
}

/** Statuses without a body in any case. */
const BODYLESS: readonly number[] = [204, 304];

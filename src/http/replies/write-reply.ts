// Chooses how each kind of reply is written.

import type { HttpContext } from '../context.ts';
import { relay } from '../forwarding/relay.ts';
import type { HttpRequest } from '../request.ts';
import type { EventStreams } from '../sse/event-stream.ts';
import { HttpReplyWriter } from './http-reply-writer.ts';
import type { Reply } from './reply.ts';
import { lengthOf, respond } from './respond.ts';
import { respondInPieces } from './respond-in-pieces.ts';

export function writeReply(
  context: HttpContext,
  reply: Reply,
  streams: EventStreams,
  request: HttpRequest,
): Promise<void> | void {
  if (reply.kind === 'stream') return streams.write(context, reply.events$, request, reply.report);
  if (reply.kind === 'mcp')
    return reply.serve(new HttpReplyWriter(context, streams, request), (answer) =>
      relay(context, answer, streams),
    );
  if (reply.trail !== undefined) context.state.trail = reply.trail;
  if (reply.kind === 'pieces') return respondInPieces(context, reply, streams);
  const isFromServer = reply.instanceId !== undefined;
  const refusal = isFromServer ? streams.unread.refusalOf(context, lengthOf(reply.bytes ?? '')) : undefined;
  if (refusal !== undefined) throw refusal;
  respond(context, reply);
  streams.unread.count(context);
}

// Writes an answer as its client reads it: one piece is in memory, and none is made for a client that has left.

import type { ServerResponse } from 'node:http';
import { ClientGone } from '../client-gone.ts';
import type { HttpContext } from '../context.ts';
import type { EventStreams } from '../sse/event-stream.ts';
import type { PiecesReply } from './reply.ts';
import { commonHeaders } from './respond.ts';
import { limitReader } from './unread-answers.ts';

/** Throws the error of a piece, which breaks the answer off, or ClientGone. */
export async function respondInPieces(
  { req: request, res: response, state }: HttpContext,
  { status, headers = [], first, others }: PiecesReply,
  { unread, unreadMs }: Pick<EventStreams, 'unread' | 'unreadMs'>,
): Promise<void> {
  try {
    if (response.destroyed) throw new ClientGone();
    response.writeHead(status, [...commonHeaders(state), ...headers, 'Content-Type', 'application/json']);
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    limitReader(response, unreadMs);
    let piece: IteratorResult<string, string> = { value: first };
    while (piece.done !== true) {
      const isRead = response.write(piece.value);
      unread.count({ res: response, state });
      if (!isRead) await readOrGone(response);
      if (response.destroyed) throw new ClientGone();
      piece = await others.next();
    }
    response.end(piece.value);
  } finally {
    await others.return('');
  }
}

/** Resolves when the client has read all written bytes, or has left. */
function readOrGone(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
    if (response.destroyed) done();
  });
}

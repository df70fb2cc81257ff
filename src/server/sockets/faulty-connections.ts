// Connections whose requests are no HTTP, or do not arrive in time. Node would answer and close all that are late in one turn
// of the event loop, 0.2 s for 4,000 of them; here they take turns. The answers are those of Node.

import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { codeOf } from '../../domain/errors/errors.ts';
import { TaskScheduler } from '../../domain/time/task-scheduler.ts';

/** An `import` would load Node's `fetch`, too (14 MB). */
const { STATUS_CODES } = process.getBuiltinModule('node:http');
const TOO_LATE = 'ERR_HTTP_REQUEST_TIMEOUT';
const STATUSES: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  [TOO_LATE]: 408,
};

/**
 * Ends such connections of a server, after the requests before the fault are answered: their callers would take the refusal for
 * the answer to a call that has an effect. It has a scheduler of its own: requests do not wait behind thousands of late ones.
 */
export function endFaultyConnections(server: Pick<Server, 'on'>): void {
  const scheduler = new TaskScheduler();
  /** Each further piece of what is no HTTP is one more fault of its connection. */
  const ending = new WeakSet<Duplex>();
  server.on('clientError', (error, socket) => {
    const code = codeOf(error) ?? '';
    const status = STATUSES[code] ?? 400;
    if (code === TOO_LATE) scheduler.run(() => refuse(socket, status));
    else if (socket.readableEnded && answerBefore(socket) !== undefined) socket.destroy();
    else if (!ending.has(socket)) refuse(socket, status);
    ending.add(socket);
  });
}

function refuse(socket: Duplex, status: number): void {
  const before = answerBefore(socket);
  if (before !== undefined) {
    before.once('close', () => refuse(socket, status));
    return;
  }
  const hasAnswer = currentAnswer(socket)?.headersSent === true; // Node's own handler asks the same
  if (socket.writable && !hasAnswer)
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`);
  socket.destroy();
}

/** The answer that is written now, if its request is complete: then the fault is in what follows it. */
function answerBefore(socket: Duplex): ServerResponse | undefined {
  const answer = currentAnswer(socket);
  return answer?.req.complete && !socket.destroyed ? answer : undefined;
}

function currentAnswer(socket: Duplex): ServerResponse | undefined {
  return Object(socket)._httpMessage ?? undefined;
}

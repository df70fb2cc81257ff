// Connections whose requests are no HTTP, or do not arrive in time. Node would answer and close all that are late in one turn
// of the event loop, 0.2 s for 4,000 of them; here they take turns. The answers are those of Node.

import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { codeOf } from '../domain/errors/errors.ts';
import { TaskScheduler } from '../domain/time/task-scheduler.ts';

/** An `import` would load Node's `fetch`, too (14 MB). */
const { STATUS_CODES } = process.getBuiltinModule('node:http');
const TOO_LATE = 'ERR_HTTP_REQUEST_TIMEOUT';
const STATUSES: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  [TOO_LATE]: 408,
};

/** Ends such connections of a server. It has a scheduler of its own: requests do not wait behind thousands of late ones. */
export function endFaultyConnections(server: Pick<Server, 'on'>): void {
  const scheduler = new TaskScheduler();
  server.on('clientError', (error, socket) => {
    const code = codeOf(error) ?? '';
    const end = (): void => refuse(socket, STATUSES[code] ?? 400, error);
    if (code === TOO_LATE) scheduler.run(end);
    else end();
  });
}

function refuse(socket: Duplex, status: number, error: Error): void {
  const hasAnswer = Object(socket)._httpMessage?._headerSent === true; // Node's own handler asks the same
  if (socket.writable && !hasAnswer)
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`);
  socket.destroy(error);
}

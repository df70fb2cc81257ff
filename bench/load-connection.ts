// One keep-alive connection of the load generator on a bare socket: sends, waits for the whole answer, reports,
// repeats. It reads only as much HTTP as the answers of this benchmark need: status, content-length, chunked bodies.

import { connect, type Socket } from 'node:net';

/** Target and request, prepared once for all connections. */
export interface Shot {
  readonly host: string;
  readonly port: number;
  /** The complete request, headers and body. */
  readonly request: Buffer;
}

/** The callbacks of the owner of a connection. Times are from `performance.now()`, in ms. */
export interface Listener {
  answered(startedMs: number, finishedMs: number, isGood: boolean): void;
  /** The connection broke in the middle of a request; it reconnects by itself. */
  broken(reason: string): void;
  /** Whether the next request should be sent. */
  goesOn(): boolean;
}

const headEnd = Buffer.from('\r\n\r\n');
const chunkedEnd = Buffer.from('0\r\n\r\n');
const reconnectDelayMs = 50;

/** Opens a connection that keeps one request in flight until the listener stops it. */
export function openConnection(shot: Shot, listener: Listener): void {
  let startedMs = 0;
  let received: Buffer | undefined;
  const socket: Socket = connect({ host: shot.host, port: shot.port, noDelay: true });
  const send = (): void => {
    if (!listener.goesOn()) {
      socket.destroy();
      return;
    }
    startedMs = performance.now();
    socket.write(shot.request);
  };
  socket.on('connect', send);
  socket.on('data', (chunk: Buffer) => {
    received = received === undefined ? chunk : Buffer.concat([received, chunk]);
    if (!isWhole(received)) return;
    // Bytes 9 to 11 of `HTTP/1.1 200 OK` are the status.
    const isGood = received.toString('latin1', 9, 12) === '200';
    received = undefined;
    listener.answered(startedMs, performance.now(), isGood);
    send();
  });
  socket.on('error', () => {
    // 'close' follows and reports; without this handler the process would end.
  });
  socket.on('close', () => {
    if (!listener.goesOn()) return;
    listener.broken(received === undefined ? 'closed before the answer' : 'closed inside the answer');
    setTimeout(() => openConnection(shot, listener), reconnectDelayMs);
  });
}

/** Whether the bytes are a complete answer. There is never more than one, because nothing is pipelined. */
function isWhole(bytes: Buffer): boolean {
  const headLength = bytes.indexOf(headEnd);
  if (headLength === -1) return false;
  const head = bytes.toString('latin1', 0, headLength);
  const length = /content-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) return bytes.length >= headLength + 4 + Number(length);
  return bytes.subarray(-chunkedEnd.length).equals(chunkedEnd);
}

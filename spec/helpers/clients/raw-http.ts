// HTTP over a plain socket, for requests that no client library would send.

import { once } from 'node:events';
import { connect, type NetConnectOpts, type Socket } from 'node:net';

/** Whether connections are accepted at this address. */
export function accepts(address: NetConnectOpts): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address);
    const settle = (isAccepted: boolean): void => {
      socket.destroy();
      resolve(isAccepted);
    };
    socket.once('connect', () => settle(true));
    for (const end of ['error', 'timeout']) socket.once(end, () => settle(false));
  });
}

/** Sends bytes and resolves with everything received when the server has closed the connection. */
export async function sendRaw(port: number, ...parts: (string | Buffer)[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  for (const part of parts) socket.write(part);
  return readAll(socket);
}

/** Opens a socket that a spec writes to itself. */
export async function openRaw(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

/** Everything received until the connection is closed or reset. */
export async function readAll(socket: Socket): Promise<string> {
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  await untilClosed(socket);
  return received;
}

/** Resolves when the connection is closed or reset. */
export function untilClosed(socket: Socket): Promise<void> {
  if (socket.closed) return Promise.resolve();
  socket.on('error', () => socket.destroy());
  // Not events.once, which would reject on a reset.
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

/** Resolves with everything received as soon as it contains the text. */
export async function readUntil(socket: Socket, text: string): Promise<string> {
  let received = '';
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    received += String(chunk);
    if (received.includes(text)) return received;
  }
  throw new Error(`the connection ended without "${text}": ${received}`);
}

/** A request with a JSON body. */
export function jsonRequest(
  line: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): string {
  const own = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
  return head(line, { ...own, ...headers }) + body;
}

/** A request head: request line, Host unless one is given, and the headers. */
export function head(line: string, headers: Readonly<Record<string, string>> = {}): string {
  const all = { Host: 'localhost', ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

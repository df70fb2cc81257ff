// Ends connections whose other end renews its keys over and over, which TLS 1.3 allows at any time. OpenSSL derives the keys
// while it reads the socket. Node reads thousands of renewals in one turn of the event loop, and of the code here it calls only
// the listener of keys before the end of the turn. Source: ADR 343.

import type { Server } from 'node:http';
import type { TLSSocket } from 'node:tls';

/** The most renewals by the other end of one connection. Libraries renew after 2^37 bytes or more, or never. */
const MAX_KEY_UPDATES = 32;
/** The beginnings of the lines about renewals, in each direction. */
const RENEWALS = ['CLIENT_TRAFFIC_SECRET_N ', 'SERVER_TRAFFIC_SECRET_N '];
const MAX_LINE_BYTES = 24;

/** Limits the renewals of all connections of a server of HTTPS. */
export function limitKeyUpdatesOf(server: Server): void {
  const renewals = new WeakMap<TLSSocket, number>();
  server.on('keylog', (line: Buffer, socket: TLSSocket) => {
    if (!isRenewal(line)) return;
    const count = (renewals.get(socket) ?? 0) + 1;
    renewals.set(socket, count);
    if (count > MAX_KEY_UPDATES) socket.destroy();
  });
}

/** Limits the renewals of one connection to a server. */
export function limitKeyUpdates(socket: TLSSocket): void {
  let count = 0;
  socket.on('keylog', (line) => {
    if (isRenewal(line)) count += 1;
    if (count > MAX_KEY_UPDATES) socket.destroy(new Error('the server renews its keys too often'));
  });
}

function isRenewal(line: Buffer): boolean {
  return RENEWALS.includes(line.toString('latin1', 0, MAX_LINE_BYTES));
}

// A line to a Redis server that a spec can cut, block and mend: a TCP relay with a port of its own.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export interface RedisLine {
  /** Of the relay, with the user part that is given. */
  url(credentials?: string): string;
  /** Breaks every connection and refuses new ones. */
  cut(): Promise<void>;
  /** Takes bytes and passes nothing on. */
  block(): void;
  /** Undoes cut() and block(), on the same port. */
  mend(): Promise<void>;
  close(): Promise<void>;
}

/** A relay to the server at `target`. */
export async function redisLine(target: string): Promise<RedisLine> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isBlocked = false;
  let server: Server | undefined;
  const relay = (client: Socket): void => {
    const upstream = connect(Number(port || 6379), hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => {
        if (!isBlocked) to.write(bytes);
      });
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  };
  const listen = async (onPort: number): Promise<number> => {
    server = createServer(relay);
    await once(server.listen(onPort, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  };
  const cut = async (): Promise<void> => {
    if (server === undefined) return;
    const closed = once(server.close(), 'close');
    for (const socket of sockets) socket.destroy();
    await closed;
    server = undefined;
  };
  const ownPort = await listen(0);
  return {
    url: (credentials = '') => `redis://${credentials}127.0.0.1:${ownPort}`,
    cut,
    block: () => {
      isBlocked = true;
    },
    mend: async () => {
      isBlocked = false;
      if (server === undefined) await listen(ownPort);
    },
    close: cut,
  };
}

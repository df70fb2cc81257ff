// A line to a server of any kind that a spec can cut, silence and mend: a TCP relay with a port of its own. It can also
// be long: every byte arrives a little later.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import * as assert from 'uvu/assert';

export interface ServerLine {
  /** The URL of the server, through this line. */
  readonly url: string;
  /** Breaks every connection and refuses new ones, as when the server is stopped. */
  cut(): Promise<void>;
  /** Connections stay open, new ones are accepted, and nothing passes any more, as when a cable is pulled. */
  silence(): void;
  /** New connections work again; those that were silenced hear nothing for ever. */
  mend(): Promise<void>;
  close(): Promise<void>;
}

const defaultPorts: Readonly<Record<string, number>> = {
  'postgres:': 5432,
  'postgresql:': 5432,
  'mysql:': 3306,
  'mariadb:': 3306,
  'redis:': 6379,
};

/** A line to the server of this URL. `delayMs` is how long each piece is on its way, one at a time in each direction. */
export async function serverLine(target: string, { delayMs = 0 } = {}): Promise<ServerLine> {
  const url = new URL(target);
  const { hostname } = url;
  const port = Number(url.port) || defaultPorts[url.protocol];
  assert.ok(port, `the port of ${url.protocol}`);
  const sockets = new Set<Socket>();
  let server: Server | undefined;
  /** What is said on a connection that was opened before this changed is heard by nobody. */
  let isSilent = false;
  let epoch = 0;
  const pass = (from: Socket, to: Socket): void => {
    const since = epoch;
    sockets.add(from);
    from.on('data', (bytes) => {
      const arrive = (): void => {
        if (since === epoch) to.write(bytes);
        from.resume();
      };
      if (delayMs === 0) return arrive();
      from.pause();
      setTimeout(arrive, delayMs);
    });
    from.on('error', () => from.destroy());
    from.on('close', () => {
      sockets.delete(from);
      if (since === epoch) to.destroy();
    });
  };
  const accept = (client: Socket): void => {
    if (isSilent) {
      sockets.add(client.resume().on('error', () => client.destroy()));
      client.on('close', () => sockets.delete(client));
      return;
    }
    const upstream = connect(port, hostname);
    pass(client, upstream);
    pass(upstream, client);
  };
  const listen = async (onPort: number): Promise<number> => {
    server = createServer(accept);
    await once(server.listen(onPort, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  };
  const cut = async (): Promise<void> => {
    if (server === undefined) return;
    const closed = once(server.close(), 'close');
    server = undefined;
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  url.hostname = '127.0.0.1';
  url.port = String(await listen(0));
  const ownPort = Number(url.port);
  return {
    url: url.href,
    cut,
    silence: () => {
      isSilent = true;
      epoch += 1;
    },
    mend: async () => {
      isSilent = false;
      if (server === undefined) await listen(ownPort);
    },
    close: cut,
  };
}

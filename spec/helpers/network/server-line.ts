// A TCP relay to a server of any kind, on its own port, whose connection a spec can cut, stall and restore. It can also
// delay every byte.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { type Duplex, Transform } from 'node:stream';
import * as assert from 'uvu/assert';

export interface ServerLine {
  /** The URL of the server through the relay. */
  readonly url: string;
  /** Breaks every connection and refuses new ones, as when the server is stopped. */
  cut(): Promise<void>;
  /** Connections stay open, new ones are accepted, and nothing passes any more, as when a cable is pulled. */
  silence(): void;
  /** New connections work again; those that were silenced never carry data again. */
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

/**
 * Starts a relay to the server of this URL. `delayMs` is the delay of each chunk, one at a time per direction. `silentAfter`: the line is silent
 * once it has passed these words on to the server.
 */
export async function serverLine(
  target: string,
  { delayMs = 0, silentAfter }: { delayMs?: number; silentAfter?: RegExp } = {},
): Promise<ServerLine> {
  const url = new URL(target);
  const { hostname } = url;
  const port = Number(url.port) || defaultPorts[url.protocol];
  assert.ok(port, `the port of ${url.protocol}`);
  const streams = new Set<Duplex>();
  /** The silenced connections: not even their end is passed on. */
  const silenced = new Set<Duplex>();
  let server: Server | undefined;
  let isSilent = false;
  const keep = <T extends Duplex>(stream: T): T => {
    streams.add(stream.on('error', () => stream.destroy()));
    return stream.on('close', () => streams.delete(stream));
  };
  const pass = (from: Socket, to: Socket): void => {
    const through = delayMs === 0 ? from : from.pipe(keep(late(delayMs)));
    through.pipe(to);
    from.on('close', (hadError) => {
      if (hadError && !silenced.has(from)) to.destroy();
    });
  };
  const accept = (client: Socket): void => {
    keep(client);
    if (isSilent) return;
    const upstream = keep(connect(port, hostname));
    pass(client, upstream);
    pass(upstream, client);
    client.on('data', (bytes: Buffer) => {
      if (silentAfter?.test(bytes.toString('latin1'))) silence(); // written by `pipe` before
    });
  };
  const silence = (): void => {
    isSilent = true;
    for (const stream of streams) silenced.add(stream.unpipe().pause());
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
    for (const stream of streams) stream.destroy();
    await closed;
  };
  url.hostname = '127.0.0.1';
  url.port = String(await listen(0));
  const ownPort = Number(url.port);
  return {
    url: url.href,
    cut,
    silence,
    mend: async () => {
      isSilent = false;
      if (server === undefined) await listen(ownPort);
    },
    close: cut,
  };
}

/** Passes one chunk at a time, after the delay. */
function late(delayMs: number): Transform {
  return new Transform({
    transform: (bytes, _encoding, arrive) => void setTimeout(arrive, delayMs, null, bytes),
  });
}

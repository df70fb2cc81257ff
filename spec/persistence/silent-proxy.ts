// A proxy in front of a database server that can go silent: sockets stay open and nothing passes any more, as when a
// cable is pulled. It can also be far away: every byte arrives a little later.

import { connect, createServer, type Socket } from 'node:net';
import { PassThrough, Transform } from 'node:stream';

export interface SilentProxy {
  /** The URL of the server, through the proxy. */
  readonly url: string;
  /** While it is silent, new connections are accepted and hear nothing either. */
  silence(): void;
  /** The same some time from now; nothing when it is closed by then. */
  silenceIn(ms: number): void;
  /** New connections work again; the old ones stay silent for ever. */
  speak(): void;
  close(): Promise<void>;
}

/** `delayMs` is how long everything is on its way, in each direction. */
export async function silentProxy(url: string, { delayMs = 0 } = {}): Promise<SilentProxy> {
  const target = new URL(url);
  const server = { host: target.hostname, port: Number(target.port) };
  const sockets = new Set<Socket>();
  let isSilent = false;
  let silenced: (() => void)[] = [];
  const proxy = createServer((client) => {
    sockets.add(client.on('error', () => client.destroy()));
    if (isSilent) return;
    const upstream = connect(server);
    sockets.add(upstream.on('error', () => upstream.destroy()));
    const [there, back] = [farAway(delayMs), farAway(delayMs)];
    client.pipe(there).pipe(upstream).pipe(back).pipe(client);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
    silenced.push(() => {
      there.unpipe(upstream);
      back.unpipe(client);
      there.resume();
      back.resume();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const address = proxy.address();
  if (typeof address !== 'object' || address === null) throw new Error('the proxy has no port');
  target.hostname = '127.0.0.1';
  target.port = String(address.port);
  const timers: NodeJS.Timeout[] = [];
  const silence = (): void => {
    isSilent = true;
    for (const cutOff of silenced) cutOff();
    silenced = [];
  };
  return {
    url: target.href,
    silence,
    silenceIn: (ms) => {
      timers.push(setTimeout(silence, ms));
    },
    speak: () => {
      isSilent = false;
    },
    close: async () => {
      for (const timer of timers) clearTimeout(timer);
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}

/** Hands on what it gets, `delayMs` later. One piece at a time: a line that is never full, as between a store and its database. */
function farAway(delayMs: number): Transform {
  if (delayMs === 0) return new PassThrough();
  return new Transform({
    transform: (bytes, _encoding, done) => {
      setTimeout(() => done(null, bytes), delayMs);
    },
  });
}

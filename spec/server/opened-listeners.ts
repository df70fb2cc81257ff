// Listeners with real sockets, for the specs of connections and of pipelined requests.

import type { RequestListener } from 'node:http';
import { type Listeners, openListeners, type ReceiveTimeouts } from '../../src/server/sockets/listeners.ts';
import { OpenConnections } from '../../src/server/sockets/open-connections.ts';
import type { Suite } from '../helpers/suite.ts';

/** Opens listeners for a suite; what was opened ends with each test. */
export class OpenedListeners {
  readonly #cleanups: (() => unknown)[] = [];

  constructor(test: Suite) {
    test.after.each(async () => {
      for (const cleanup of this.#cleanups.splice(0)) await cleanup();
    });
  }

  /** Runs after the present test. */
  readonly later = (cleanup: () => unknown): void => void this.#cleanups.push(cleanup);

  readonly open = async (
    ports: readonly number[],
    options: {
      host?: string;
      portsDefaulted?: boolean;
      serve?: RequestListener;
      patience?: ReceiveTimeouts;
      headerBytes?: number;
      connections?: OpenConnections;
    } = {},
  ): Promise<Listeners> => {
    const { host = '127.0.0.1', portsDefaulted = false, serve = hello, patience, headerBytes } = options;
    const { connections = new OpenConnections({ ...(headerBytes && { headerBytes }) }) } = options;
    const wanted = ports.map((port) => ({ host, port, label: 'gateway' as const }));
    const listeners = await openListeners(
      { listeners: wanted, portsDefaulted },
      { serve },
      {
        ...(patience && { timeouts: patience }),
        connections,
      },
    );
    this.later(() => listeners.close(0));
    return listeners;
  };
}

export function portOf({ urls }: Listeners): number {
  return Number(new URL(String(urls[0])).port);
}

const hello: RequestListener = (_, response) => void response.end('hello');

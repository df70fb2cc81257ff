// A plain load balancer in front of several nodes: each request goes to the next node in turn, unless a header selects a node.
// It knows neither JSON-RPC nor MCP, like nginx and HAProxy.

import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { startRawServer } from '../../transports/raw-server.ts';

/** A balancer that listens. The caller closes it. */
export interface Balancer {
  readonly url: string;
  /** The index of the node of each request so far. */
  readonly taken: readonly number[];
  close(): Promise<void>;
}

export interface BalancerOptions {
  /**
   * Sticky headers: the node that first received a value, or first answered with it, gets every request with that value. The
   * first of these headers in a request counts. Default: none, which is round robin.
   */
  readonly stickTo?: readonly string[];
}

/** Longer than the timeout of any node. */
const keptForMs = 600_000;

/** Starts a balancer on a free port. A node that does not listen is skipped; broken requests are not repeated. */
export async function startBalancer(
  nodes: readonly string[],
  { stickTo = [] }: BalancerOptions = {},
): Promise<Balancer> {
  const agent = new Agent({ keepAlive: true });
  const taken: number[] = [];
  const stuck = new Map<string, number>();
  let turn = 0;

  const placeOf = (key: string | undefined): number => {
    const known = key === undefined ? undefined : stuck.get(key);
    if (known !== undefined) return known;
    turn += 1;
    return (turn - 1) % nodes.length;
  };
  const forward = (incoming: IncomingMessage, body: Buffer, response: ServerResponse): void => {
    const key = keyIn(incoming, stickTo);
    const first = placeOf(key);
    const attempt = (index: number, left: number): void => {
      const { method, url = '/', headers } = incoming;
      const outgoing = request(new URL(url, nodes[index]), { method, headers, agent });
      response.once('close', () => outgoing.destroy());
      outgoing.once('error', (error) => {
        if ('code' in error && error.code === 'ECONNREFUSED' && left > 1)
          attempt((index + 1) % nodes.length, left - 1);
        else if (!response.headersSent) response.writeHead(502).end();
        else response.destroy();
      });
      outgoing.once('response', (answer) => {
        taken.push(index);
        for (const stick of [key, keyIn(answer, stickTo)]) {
          if (stick !== undefined) stuck.set(stick, index);
        }
        response.writeHead(answer.statusCode ?? 502, answer.headers).flushHeaders();
        answer.once('error', () => response.destroy()).pipe(response);
      });
      outgoing.end(body);
    };
    attempt(first, nodes.length);
  };

  // It passes on the keep-alive time of a node, so it must keep its own connections longer: otherwise a client that relies on
  // that time writes into a connection that is being closed.
  const receive = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> =>
    forward(incoming, await buffer(incoming), response);
  const { port, close } = await startRawServer(receive, 0, { keepAliveTimeout: keptForMs });
  return {
    url: `http://127.0.0.1:${port}`,
    taken,
    close: async () => {
      agent.destroy();
      await close();
    },
  };
}

function keyIn({ headers }: IncomingMessage, names: readonly string[]): string | undefined {
  const name = names.find((one) => headers[one.toLowerCase()] !== undefined);
  return name === undefined ? undefined : `${name} ${headers[name.toLowerCase()]}`;
}

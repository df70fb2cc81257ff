// Servers that write any bytes, and calls through a pool of connections to them.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { GatewayError } from '../../../src/domain/errors/errors.ts';
import { idValue } from '../../../src/domain/mcp/jsonrpc.ts';
import type { ConnectionPool } from '../../../src/net/http1/connection-pool.ts';
import { HttpAnswer } from '../../../src/transports/http/answers/http-answer.ts';
import { postTo } from '../../transports/http/pool-of.ts';

export interface Served {
  readonly port: number;
  readonly sockets: ReadonlySet<Socket>;
  /** How many connections were made. */
  readonly made: () => number;
}

/** Runs the body against a server that gets each whole request, with its path and its number from 1. */
export async function serve(
  onRequest: (socket: Socket, path: string, count: number) => void,
  body: (served: Served) => Promise<void>,
  server: Server = createServer(),
): Promise<void> {
  const sockets = new Set<Socket>();
  let [made, count] = [0, 0];
  server.on('cert' in server ? 'secureConnection' : 'connection', (socket: Socket) => {
    made += 1;
    sockets.add(socket);
    // Else what follows an answer would wait for the next request.
    socket.setNoDelay(true);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    let received = '';
    socket.on('data', (data) => {
      received += data.toString('latin1');
      const [request, path = ''] = REQUEST.exec(received) ?? [];
      if (request === undefined) return;
      received = received.slice(request.length);
      count += 1;
      onRequest(socket, path, count);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await body({ port: (server.address() as AddressInfo).port, sockets, made: () => made });
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

const REQUEST = /^POST (\S+) HTTP\/1\.1\r\n(?:[^\r]+\r\n)*?content-length: 2\r\n\r\n\{\}/;

/** The path of a request is also the id of its message. */
export const resultOf = (path: string): string =>
  `{"jsonrpc":"2.0","id":"${path}","result":{"path":"${path}"}}`;

/** `size`: bytes of the body at least. */
export function answerOf(path: string, head = '', size = 0): string {
  const body = resultOf(path).padEnd(size);
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${head}content-length: ${body.length}\r\n\r\n${body}`;
}

export interface Outcome {
  /** The path in the result that the answer has. */
  readonly path: string | undefined;
  readonly kind: string;
  readonly failure?: GatewayError;
}

/** Sends one request. */
export function call(pool: ConnectionPool, path: string, text = postTo(path)): Promise<Outcome> {
  return new Promise((resolve) => {
    let seen: string | undefined;
    const answer = new HttpAnswer({
      message: (message) => {
        // As HttpExchange does, which ignores the answers to other requests.
        if (message.kind !== 'result' || idValue(message.id) !== path) return;
        seen = /"path":"([^"]*)"/.exec(message.result.text)?.[1];
      },
      finished: (ending) => resolve({ path: seen, ...ending }),
    });
    pool.dispatch({ text, answer });
  });
}

// The plainest balancer: each request goes to the next node, whatever its session, over a connection of its own. A node that refuses
// connections is left out until its /readyz answers 200. A request that reached a node is never sent to another one.

import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { portOf } from '../port.ts';

/** Longest wait of a request for a node that accepts it, in ms. */
const PATIENCE_MS = 15_000;
const CHECK_MS = 50;

/** The opening of a session, or its first call of a tool that is not safe to repeat. */
type MomentKind = 'initialize' | 'first unsafe call';

export interface Balancer {
  readonly origin: string;
  /** Resolves with the node that opens the session, or that opened it, when such a request is sent to a node the next time. */
  next(kind: MomentKind): Promise<string>;
  /** Sends no new requests to a node; what Kubernetes does before it stops a pod. */
  takeOut(node: string): void;
  putBack(node: string): void;
  close(): void;
}

/** `nodes`: their origins. */
export async function startBalancer(nodes: readonly string[]): Promise<Balancer> {
  const out = new Set<string>();
  /** Nodes that refused a connection and are asked for their readiness. */
  const away = new Set<string>();
  const moments = new Moments();
  let turn = 0;
  const nextNode = (): string | undefined => {
    const usable = nodes.filter((node) => !out.has(node) && !away.has(node));
    turn += 1;
    return usable[turn % usable.length];
  };
  const leaveOut = async (node: string): Promise<void> => {
    if (away.has(node)) return;
    away.add(node);
    while (server.listening && !(await isReady(node))) await delay(CHECK_MS);
    away.delete(node);
  };

  const server = createServer({ keepAliveTimeout: 120_000, requestTimeout: 0 }, (incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => void pass(incoming, Buffer.concat(chunks), response));
  });

  async function pass(incoming: IncomingMessage, body: Buffer, response: ServerResponse): Promise<void> {
    const giveUpAtMs = performance.now() + PATIENCE_MS;
    while (performance.now() < giveUpAtMs && !response.destroyed) {
      const node = nextNode();
      if (node === undefined) await delay(10);
      else if ((await forward(node, incoming, body, response, moments)) === 'refused') void leaveOut(node);
      else return;
    }
    if (!response.destroyed) response.writeHead(502).end('no node accepts connections');
  }

  const port = await portOf(server.listen(0, '127.0.0.1'));
  return {
    origin: `http://127.0.0.1:${port}`,
    next: (kind) => moments.next(kind),
    takeOut: (node) => void out.add(node),
    putBack: (node) => void out.delete(node),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Sees what the requests are. */
class Moments {
  /** By session: the node that opened it. It is removed with the first unsafe call. */
  readonly #opened = new Map<string, string>();
  readonly #waiting = new Map<MomentKind, (node: string) => void>();

  next(kind: MomentKind): Promise<string> {
    return new Promise((resolve) => this.#waiting.set(kind, resolve));
  }

  sent(node: string, { headers }: IncomingMessage, body: Buffer): void {
    const session = String(headers['mcp-session-id']);
    const opener = this.#opened.get(session);
    if (body.includes('"method":"initialize"')) this.#resolve('initialize', node);
    else if (opener !== undefined && /"name":"(?:write|ask)"/.test(body.toString())) {
      this.#opened.delete(session);
      this.#resolve('first unsafe call', opener);
    }
  }

  answered(node: string, { headers }: IncomingMessage, body: Buffer): void {
    const { 'mcp-session-id': session } = headers;
    if (body.includes('"method":"initialize"') && typeof session === 'string')
      this.#opened.set(session, node);
  }

  #resolve(kind: MomentKind, node: string): void {
    this.#waiting.get(kind)?.(node);
    this.#waiting.delete(kind);
  }
}

/** Resolves when the request is answered or broken, or at once when the node refuses the connection. */
function forward(
  node: string,
  incoming: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
  moments: Moments,
): Promise<'refused' | 'done'> {
  const { method, url, headers } = incoming;
  return new Promise((resolve) => {
    const agent = new Agent({ keepAlive: false });
    const outgoing = request(new URL(url ?? '/', node), { method, headers, agent });
    outgoing.on('socket', (socket) => socket.once('connect', () => moments.sent(node, incoming, body)));
    outgoing.on('response', (answer) => {
      moments.answered(node, answer, body);
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
      answer.on('error', () => response.destroy());
      answer.on('close', () => {
        if (!answer.complete) response.destroy();
        resolve('done');
      });
    });
    outgoing.on('error', (error) => {
      if ('code' in error && error.code === 'ECONNREFUSED') return resolve('refused');
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end(String(error));
      return resolve('done');
    });
    response.on('close', () => outgoing.destroy());
    outgoing.end(body);
  });
}

async function isReady(node: string): Promise<boolean> {
  try {
    const answer = await fetch(`${node}/readyz`, { signal: AbortSignal.timeout(1_000) });
    await answer.text();
    return answer.status === 200;
  } catch {
    return false; // not there yet
  }
}

// An HTTP+SSE client over a plain socket, for behaviour that no client library has.

import type { Socket } from 'node:net';
import { StringDecoder } from 'node:string_decoder';
import * as assert from 'uvu/assert';
import type { AccountsFixture, Credentials } from '../http/accounts.ts';
import type { Answer } from '../http/app.ts';
import { initialize, rpc, toolCall } from './mcp-messages.ts';
import { head, openRaw, readUntil } from './raw-http.ts';

export const hello = (id = 0, version = '2024-11-05') => ({ ...initialize(version), id });
export const message = (id: number, method: string, params?: object) => rpc(method, params, id);
export const call = (id: number, name: string, args?: object) => toolCall(name, args, id);

/** An answer of JSON-RPC. */
interface Rpc {
  readonly result?: unknown;
  readonly error?: { readonly code: number };
}

/** An open stream and its path for posting. */
export interface SseStream {
  readonly socket: Socket;
  readonly path: string;
  readonly credentials: Credentials;
  /** Everything received. */
  readonly received: () => string;
  /** Waits for the answer to a request. */
  answer(id: number): Promise<Rpc>;
  post(body: unknown, credentials?: Credentials): Promise<Answer>;
}

/** Opens a stream and reads its path for posting. */
export async function open(
  app: AccountsFixture,
  path = '/mcp/demo/sse',
  credentials = app.user,
): Promise<SseStream> {
  const socket = await openRaw(app.port);
  // The connection ends with the stream, so that the end is noticed at once.
  socket.write(head(`GET ${path}`, { ...credentials, Accept: 'text/event-stream', Connection: 'close' }));
  const greeting = await readUntil(socket, '\n\n');
  const pieces: string[] = [];
  const answers = new Map<unknown, Rpc>();
  let changed = Promise.withResolvers<void>();
  let line = '';
  const change = (): void => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const decoder = new StringDecoder();
  socket.on('error', () => socket.destroy());
  socket.on('close', change);
  socket.on('data', (chunk) => {
    const piece = decoder.write(chunk);
    pieces.push(piece);
    const lines = piece.split('\n');
    lines[0] = line + lines[0];
    line = lines.pop() ?? '';
    for (const said of lines.filter((one) => one.startsWith('data: {'))) {
      const { id, method, ...answer } = JSON.parse(said.slice('data: '.length));
      if (method === undefined) answers.set(id, answer);
    }
    change();
  });
  const [, messages = ''] = /event: endpoint\n(?:.*\n)*?data: (\S+)\n/.exec(greeting) ?? [];
  assert.match(messages, /sessionId=[A-Za-z0-9_-]{51}$/, greeting);
  return {
    socket,
    path: messages,
    credentials,
    received: () => pieces.join(''),
    post: (body, other = credentials) => app.as(other, 'POST', messages, { body }),
    answer: async (id) => {
      for (;;) {
        const found = answers.get(id);
        if (found !== undefined) return found;
        if (socket.closed) throw new Error(`the stream ended without answer ${id}: ${pieces.join('')}`);
        await changed.promise;
      }
    },
  };
}

/** Opens a stream and initializes a session on it. */
export async function initialized(
  app: AccountsFixture,
  path?: string,
  credentials?: Credentials,
): Promise<SseStream> {
  const stream = await open(app, path, credentials);
  assert.is((await stream.post(hello())).status, 202);
  const { result } = await stream.answer(0);
  assert.is(Object(result).protocolVersion, '2024-11-05');
  assert.is((await stream.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).status, 202);
  return stream;
}

/** The number of calls in flight. */
export function inFlight({ gateway }: AccountsFixture): number {
  return gateway.servers().reduce((sum, { snapshot }) => sum + snapshot.inFlight, 0);
}

/** The number of open sessions. */
export function sessions({ gateway }: AccountsFixture): number {
  const counts = [...gateway.stats().clients.templates.values()];
  return counts.reduce((sum, { sessions: { open } }) => sum + open, 0);
}

// HTTP/1.1 over bare sockets, for thousands of clients in one process: what a request costs here competes with the nodes for the processor. It
// reads what the gateway sends (content-length, chunks), and takes one connection per stream, as the SDKs do.

import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface LightReply {
  readonly status: number;
  /** Undefined when the answer has no such header. */
  header(name: string): string | undefined;
  /** As received, with the framing of chunks. Empty for a stream. */
  readonly body: string;
}

/** Posts at a time: nodes and clients may have no more than some ten thousand files. */
const MAX_POSTS = 256;

/** The socket was closed before the answer was complete. */
const CUT = Object.assign(new Error('the connection was closed'), { code: 'CLOSED' });

export class LightClient {
  /** Headers of every request, as lines. */
  readonly #common: string;
  readonly #path: string;
  /** Idle connections by port. */
  readonly #idle = new Map<number, Socket[]>();
  readonly #sockets = new Set<Socket>();
  #posts = 0;

  constructor(path: string, headers: Readonly<Record<string, string>>) {
    this.#path = path;
    this.#common = linesOf({ Host: '127.0.0.1', ...headers });
  }

  /** Rejects with a code, such as ECONNREFUSED. */
  async post(port: number, headers: Readonly<Record<string, string>>, body: string): Promise<LightReply> {
    while (this.#posts >= MAX_POSTS) await delay(5);
    this.#posts += 1;
    return this.#post(port, headers, body).finally(() => {
      this.#posts -= 1;
    });
  }

  #post(port: number, headers: Readonly<Record<string, string>>, body: string): Promise<LightReply> {
    const idle = this.#idle.get(port) ?? [];
    this.#idle.set(port, idle);
    const socket = idle.pop() ?? this.#connect(port);
    const own = linesOf({
      ...headers,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Content-Length': String(Buffer.byteLength(body)),
    });
    socket.write(`POST ${this.#path} HTTP/1.1\r\n${this.#common}${own}\r\n${body}`);
    const read = (text: string, headEnd: number) =>
      isWhole(text, headEnd) ? replyOf(text, headEnd) : undefined;
    const reply = answerOn(socket, read);
    return reply.then((answer) => {
      if (!socket.destroyed) idle.push(socket);
      return answer;
    });
  }

  /**
   * Resolves with the head of the answer. After an answer 200 `read` gets the parts of the body, with the framing of chunks, and `ended` is
   * called once, when the stream is over.
   */
  async stream(
    port: number,
    headers: Readonly<Record<string, string>>,
    { read, ended }: { readonly read?: ((text: string) => void) | undefined; ended(): void },
  ): Promise<LightReply> {
    const socket = this.#connect(port);
    const own = linesOf({ ...headers, Accept: 'text/event-stream' });
    socket.write(`GET ${this.#path} HTTP/1.1\r\n${this.#common}${own}\r\n`);
    const reply = await answerOn(socket, replyOf);
    if (reply.status !== 200) socket.destroy();
    else {
      read?.(reply.body);
      if (read === undefined) socket.resume();
      else socket.on('data', (part: Buffer) => read(part.toString('latin1')));
      if (socket.destroyed) ended();
      else socket.on('close', ended);
    }
    return { ...reply, body: '' };
  }

  /** Ends all connections, also those of streams. */
  close(): void {
    for (const socket of this.#sockets) socket.removeAllListeners('close').destroy();
    this.#sockets.clear();
  }

  #connect(port: number): Socket {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    this.#sockets.add(socket);
    socket.on('error', () => undefined); // `close` follows
    socket.on('close', () => {
      this.#sockets.delete(socket);
      const idle = this.#idle.get(port);
      const index = idle?.indexOf(socket) ?? -1;
      if (index >= 0) idle?.splice(index, 1);
    });
    return socket;
  }
}

/** `read` returns the answer once the text suffices. Rejects with the error of the socket. */
function answerOn(
  socket: Socket,
  read: (text: string, headEnd: number) => LightReply | undefined,
): Promise<LightReply> {
  return new Promise((resolve, reject) => {
    let text = '';
    let failure: Error = CUT;
    const leave = (): void => {
      socket.off('data', take);
      socket.off('error', note);
      socket.off('close', cut);
    };
    const take = (part: Buffer): void => {
      text += part.toString('latin1');
      const headEnd = text.indexOf('\r\n\r\n');
      const reply = headEnd < 0 ? undefined : read(text, headEnd);
      if (reply === undefined) return;
      leave();
      resolve(reply);
    };
    const note = (error: Error): void => {
      failure = error;
    };
    const cut = (): void => {
      leave();
      reject(failure);
    };
    socket.on('data', take);
    socket.on('error', note);
    socket.on('close', cut);
  });
}

function isWhole(text: string, headEnd: number): boolean {
  const length = headerIn(text.slice(0, headEnd), 'content-length');
  if (length !== undefined) return text.length >= headEnd + 4 + Number(length);
  if (headerIn(text.slice(0, headEnd), 'transfer-encoding') === undefined) return true; // 202, 204
  return text.endsWith('0\r\n\r\n');
}

function replyOf(text: string, headEnd: number): LightReply {
  const head = text.slice(0, headEnd);
  // Characters 9 to 11 of `HTTP/1.1 200 OK` are the status.
  const status = Number(head.slice(9, 12));
  return { status, header: (name) => headerIn(head, name), body: text.slice(headEnd + 4) };
}

function headerIn(head: string, name: string): string | undefined {
  return new RegExp(`^${name}: *(.*?) *$`, 'im').exec(head)?.[1];
}

function linesOf(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
}

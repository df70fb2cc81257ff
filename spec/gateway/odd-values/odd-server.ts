// A server of either era, over HTTP or, run as a program, over stdio. Each message of one kind has an odd node.
// As a program: node odd-server.ts <era> <kind> <seed>.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createInterface } from 'node:readline';
import { openEventStream } from '../../fixtures/http-stream.ts';
import type { Message } from '../../fixtures/wire.ts';
import { Dice } from '../../helpers/dice.ts';
import { messageOf, type RawServer, startRawServer } from '../../transports/raw-server.ts';
import { type Spoken, type SpokenEra, saidAnyway, saidTo } from './odd-messages.ts';
import { withOddNode } from './odd-node.ts';

/** What the server is like. Without a kind, no message is odd. */
interface OddServerOptions {
  readonly era: SpokenEra;
  readonly kind?: string;
  readonly seed: number;
}

function writerOf({ kind, seed }: OddServerOptions): (spoken: Spoken) => string {
  const dice = new Dice(seed);
  return (spoken) =>
    spoken.kind === kind ? withOddNode(spoken.message, dice) : JSON.stringify(spoken.message);
}

/** Starts it on a free port; the caller closes it. `said` gets every odd text. */
export function startOddServer(
  options: OddServerOptions,
  said: (text: string) => void = () => {},
): Promise<RawServer> {
  const written = writerOf(options);
  const { era, kind } = options;
  const write = (spoken: Spoken): string => {
    const text = written(spoken);
    if (spoken.kind === kind) said(text);
    return text;
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method === 'DELETE') return void response.writeHead(200).end();
    if (request.method === 'GET') {
      if (era === 'modern') return void response.writeHead(405).end();
      const stream = openEventStream(response, {});
      for (const spoken of saidAnyway()) stream.send(write(spoken));
      return;
    }
    const message: Message = await messageOf(request);
    const { id, method } = message;
    if (id === undefined || method === undefined) return void response.writeHead(202).end();
    const spoken = saidTo(message, era);
    const session: Record<string, string> = method === 'initialize' ? { 'mcp-session-id': 'odd' } : {};
    if (spoken.length === 1 && spoken[0] !== undefined) {
      response.writeHead(200, { 'content-type': 'application/json', ...session }).end(write(spoken[0]));
      return;
    }
    const stream = openEventStream(response, {});
    for (const one of spoken) stream.send(write(one));
    if (method !== 'subscriptions/listen') stream.end();
  };
  return startRawServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
}

if (process.argv[1] === import.meta.filename) {
  const [, , era, kind = '', seed] = process.argv;
  const options = { era: era === 'modern' ? 'modern' : 'legacy', kind, seed: Number(seed) } as const;
  const write = writerOf(options);
  const say = (all: readonly Spoken[]): void => {
    for (const spoken of all) process.stdout.write(`${write(spoken)}\n`);
  };
  createInterface({ input: process.stdin }).on('line', (line) => {
    const message: Message = JSON.parse(line);
    if (message.method === 'notifications/initialized') say(saidAnyway());
    if (message.id !== undefined && message.method !== undefined) say(saidTo(message, options.era));
  });
}

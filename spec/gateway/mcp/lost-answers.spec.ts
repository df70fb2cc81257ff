// Answers that were written to a connection that was broken, or broke before its client had read them, over a real port: a
// client that resumes from its last event id gets them, even if the kernel accepted the bytes.

import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { openSession, rpc } from '../../helpers/clients/mcp-messages.ts';
import { head, openRaw } from '../../helpers/clients/raw-http.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type Answer, appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('lost answers');
/** More than the kernel buffers for a client that does not read. */
const UNREAD = { messages: 12, characters: 900_000 };

/** The tool of the one call that is under way: it reports progress, and answers when the spec calls `answer`. */
const slow = { report: (_text: string): void => {}, answer: (): void => {} };
const handler: InProcessHandler = ({ method, params }, { notify }) => {
  if (method === 'tools/list') return { tools: [{ name: 'slow', inputSchema: { type: 'object' } }] };
  if (method !== 'tools/call') return {};
  const { progressToken } = Object(params?._meta);
  slow.report = (message) => notify('notifications/progress', { progressToken, progress: 1, message });
  slow.report('begun');
  return new Promise((resolve) => {
    slow.answer = () => resolve({ content: [{ type: 'text', text: 'done' }] });
  });
};
const app = appFor(test, () => startApp({ logLevel: 'info' }));
test.before(() => app.serve('demo', 'one', handler));

interface Call {
  readonly socket: Socket;
  /** Of its session. */
  readonly headers: Readonly<Record<string, string>>;
  /** The first one of its stream. */
  readonly eventId: string;
}

/** A client of a new session that has called, has read the first progress, and reads no further. */
async function call(): Promise<Call> {
  const headers = await openSession(app);
  const body = JSON.stringify(rpc('tools/call', { name: 'slow', _meta: { progressToken: 'p' } }, 7));
  const socket = await openRaw(app.port);
  socket.write(head('POST /mcp/demo', { ...headers, 'content-length': String(body.length) }) + body);
  let received = '';
  while (!received.includes('begun')) received += String((await once(socket, 'data'))[0]);
  socket.pause();
  const [, eventId = ''] = /^id: (.+)$/m.exec(received) ?? [];
  return { socket, headers, eventId };
}

/** Resumes the stream, when the gateway is done with the first connection. */
async function comeBack({ headers, eventId }: Call): Promise<Answer> {
  await theCallIsOver();
  return app.ask('GET', '/mcp/demo', { headers: { ...headers, 'last-event-id': eventId } });
}

async function theCallIsOver(): Promise<void> {
  const logged = async () => app.log.filter(({ rpc_method }) => rpc_method === 'tools/call').length;
  assert.is(await eventually(logged, (found) => found === calls), calls);
}

/** The status, and what is on a stream: the texts of progress and of the answer. */
function said({ status, text }: Answer): unknown[] {
  const messages = [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => Object(JSON.parse(data)));
  const texts = messages.map(({ id, params, result }) =>
    id === 7 ? result?.content[0].text : params.message.slice(0, 10),
  );
  return [status, ...texts];
}

/** Number of calls so far. */
let calls = 0;
test.before.each(() => {
  calls += 1;
});

for (const [what, lose] of [
  [
    'breaks after the kernel accepted the answer, before its client has read it',
    async (socket: Socket) => {
      slow.answer();
      await theCallIsOver();
      socket.resetAndDestroy();
    },
  ],
  ['was closed before the answer, unnoticed', (socket: Socket) => socket.destroy()],
  ['was reset before the answer, and the kernel refuses it', (socket: Socket) => socket.resetAndDestroy()],
] as const) {
  test(`the answer to a connection that ${what} is sent again`, async () => {
    const client = await call();
    await lose(client.socket);
    slow.answer();
    assert.equal(said(await comeBack(client)), [200, 'begun', 'done']);
  });
}

test('an answer to a connection that breaks while the socket buffer is full is sent again', async () => {
  const client = await call();
  for (let sent = 0; sent < UNREAD.messages; sent += 1) {
    slow.report('x'.repeat(UNREAD.characters));
    await turn();
  }
  slow.answer();
  for (let turns = 0; turns < 5; turns += 1) await turn();
  client.socket.resetAndDestroy();
  assert.equal(said(await comeBack(client)), [200, 'x'.repeat(10), 'done']);
});

test('a client that resumes from the event of the answer gets the end of the stream, each time', async () => {
  const client = await call();
  slow.answer();
  await theCallIsOver();
  client.socket.resetAndDestroy();
  for (let visits = 0; visits < 2; visits += 1) {
    const answer = await comeBack(client);
    assert.equal(said(answer), [200, 'begun', 'done']);
    const [eventId = ''] = answer.text.match(/(?<=^id: ).+$/gm)?.slice(-1) ?? [];
    assert.equal(said(await comeBack({ ...client, eventId })), [200]);
  }
});

test.run();

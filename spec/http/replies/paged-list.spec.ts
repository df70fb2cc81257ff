// Lists whose answer is an array: long ones are read and written in pieces, as their client takes them.

import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { pagedList } from '../../../src/http/replies/paged-list.ts';
import type { Reply } from '../../../src/http/replies/reply.ts';
import { respondInPieces } from '../../../src/http/replies/respond-in-pieces.ts';
import { EventStreams } from '../../../src/http/sse/event-stream.ts';
import { head, openRaw, readUntil } from '../../helpers/clients/raw-http.ts';
import { startMiddlewares } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';
import { passTurns, TurnCounter, untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('lists of records');

/** More than the system buffers for a connection. */
const RECORDS = Array.from({ length: 800 }, (_, n) => ({ id: String(1_000 + n), text: 'é'.repeat(16_000) }));
type Record = (typeof RECORDS)[number];

/** `read`: how many records were read, at most in one turn. */
function listOf(records: readonly Record[], failAfter = Number.POSITIVE_INFINITY) {
  const read = new TurnCounter();
  const reply = () =>
    pagedList(
      'records',
      {
        items: records.map(({ id }) => id),
        idOf: (id) => id,
        read: async (page) => {
          for (const _ of page) read.note();
          if (read.all > failAfter) throw new Error('the database is away');
          return records.filter(({ id }) => page.includes(id));
        },
      },
      {},
      untimedScheduler(),
    );
  return { read, reply };
}

/** Serves the list. `ended`: with the error of each answer. */
async function serve({ reply }: { readonly reply: () => Promise<Reply> }) {
  const ended = Promise.withResolvers<string | undefined>();
  const app = await startMiddlewares(async (context) => {
    const answer = await reply();
    assert.is(answer.kind, 'pieces');
    if (answer.kind !== 'pieces') return;
    const settled = respondInPieces(context, answer, new EventStreams(systemClock));
    settled.then(
      () => ended.resolve(undefined),
      (thrown: Error) => ended.resolve(thrown.message),
    );
    await settled;
  });
  return { app, ended: ended.promise };
}

test('a long list is read in many turns, and is the JSON of its records', async () => {
  const list = listOf(RECORDS);
  const { app } = await serve(list);
  const answer = await app.ask('GET', '/');
  assert.equal(JSON.parse(answer.text), RECORDS);
  assert.is(answer.headers.get('x-total-count'), '800');
  assert.is(list.read.all, 800);
  assert.ok(list.read.fullest <= 64, `${list.read.fullest} records in one turn`);
  app.close();
});

test('a client that reads nothing gets no more records read; when it leaves, the reading ends', async () => {
  const list = listOf(RECORDS);
  const { app, ended } = await serve(list);
  const socket = await openRaw(app.port);
  socket.write(head('GET /'));
  await readUntil(socket, '"1000"');
  socket.pause();
  let before = -1;
  while (before !== list.read.all) {
    before = list.read.all;
    await passTurns(200);
  }
  assert.ok(before < 800, `${before} records`);
  socket.destroy();
  assert.is(await ended, 'The client disconnected.');
  await passTurns(200);
  assert.is(list.read.all, before);
  app.close();
});

test('HEAD reads one piece only', async () => {
  const list = listOf(RECORDS);
  const { app } = await serve(list);
  const answer = await app.ask('HEAD', '/');
  assert.equal([answer.status, answer.text, answer.headers.get('x-total-count')], [200, '', '800']);
  assert.ok(list.read.all <= 64, `${list.read.all} records`);
  app.close();
});

test('an answer whose rest cannot be read breaks off', async () => {
  const { app, ended } = await serve(listOf(RECORDS, 400));
  const refusal = await app.ask('GET', '/').then(
    () => 'complete',
    () => 'broken off',
  );
  assert.equal([refusal, await ended], ['broken off', 'the database is away']);
  app.close();
});

test('an empty list, and a page, are arrays', async () => {
  const texts = await Promise.all(
    [[], ['a'], ['a', 'b', 'c']].map((items) =>
      pagedList(
        'records',
        { items, idOf: (id) => id, read: (page) => page.map((id) => ({ id })) },
        { limit: 2 },
        untimedScheduler(),
      ),
    ),
  );
  assert.equal(
    texts.map((reply) => reply.kind === 'bytes' && String(reply.bytes)),
    ['[]', '[{"id":"a"}]', '[{"id":"a"},{"id":"b"}]'],
  );
});

test.run();

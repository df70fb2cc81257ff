import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import { ClientGone, whenGone } from '../../src/http/request.ts';
import { startMiddlewares } from '../helpers/http-middlewares.ts';
import { head, openRaw } from '../helpers/http-raw.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('a client that went away');

test('is told apart from every other error', () => {
  const gone = new ClientGone();
  assert.instance(gone, Error);
  assert.is(gone.name, 'ClientGone');
  assert.not('code' in gone);
});

test('is noticed while it waits, and afterwards; one that has its answer is not gone', async () => {
  const told: string[] = [];
  const asked: PromiseWithResolvers<ServerResponse>[] = [Promise.withResolvers(), Promise.withResolvers()];
  const app = await startMiddlewares((context) => {
    const { res: response, path } = context;
    context.respond = false;
    whenGone(response, () => told.push(path));
    if (path === '/answered') response.end('{}');
    asked.shift()?.resolve(response);
  });
  const [first, second] = asked.map(({ promise }) => promise);
  await app.ask('GET', '/answered');
  const answered = await first;
  const socket = await openRaw(app.port);
  socket.write(head('GET /waiting'));
  const waiting = await second;
  socket.destroy();
  if (waiting !== undefined && !waiting.closed) await once(waiting, 'close');
  assert.ok(answered !== undefined && waiting !== undefined);
  whenGone(waiting, () => told.push('late'));
  whenGone(answered, () => told.push('never'));
  assert.equal(told, ['/waiting', 'late']);
  app.close();
});

test.run();

import { once } from 'node:events';
import * as assert from 'uvu/assert';
import { serverNotFound } from '../../src/domain/error-catalogue.ts';
import type { Reported } from '../../src/http/call-report.ts';
import { HttpCallReport } from '../../src/http/call-report.ts';
import { gatherList } from '../../src/http/exchange-reply.ts';
import { ClientGone } from '../../src/http/request.ts';
import { startApp } from '../helpers/http-app.ts';
import { head, openRaw } from '../helpers/http-raw.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('a list as a reply');

const CLIENT = {
  ...{ callerId: 'ann', id: 'r' },
  report: (asked: Reported) => new HttpCallReport(asked, () => {}),
};

test('is what the gateway lists', async () => {
  const listed = { items: [{ name: 'a' }], instanceId: 'i' };
  const { signal } = new AbortController();
  assert.is(await gatherList({ list: async () => listed }, 't', 'tools', { signal, ...CLIENT }), listed);
});

test('fails as the gateway fails, unless nobody waits any more', async () => {
  const error = serverNotFound('x');
  const list = () => Promise.reject(error);
  const outcomeOf = (signal: AbortSignal) =>
    gatherList({ list }, 't', 'tools', { signal, ...CLIENT }).catch((thrown: unknown) => thrown);
  assert.is(await outcomeOf(new AbortController().signal), error);
  assert.instance(await outcomeOf(AbortSignal.abort()), ClientGone);
});

test('is cancelled on the backend when the client leaves, and that is no error', async () => {
  const app = await startApp({ logLevel: 'error' });
  const running = Promise.withResolvers<AbortSignal>();
  await app.serve('t', 'one', async ({ method }, { signal }) => {
    if (method !== 'prompts/list') return {};
    running.resolve(signal);
    await once(signal, 'abort');
    return {};
  });
  const socket = await openRaw(app.port);
  socket.write(head('GET /mcp/t/prompts/list'));
  const signal = await running.promise;
  socket.destroy();
  if (!signal.aborted) await once(signal, 'abort');
  await app.close();
  assert.equal(app.log, []);
});

test.run();

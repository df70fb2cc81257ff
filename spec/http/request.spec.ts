import { once } from 'node:events';
import * as assert from 'uvu/assert';
import { ANONYMOUS, type Principal } from '../../src/domain/account.ts';
import { HttpCallReport } from '../../src/http/call-report.ts';
import { createProxies } from '../../src/http/proxies.ts';
import { json } from '../../src/http/reply.ts';
import { HttpRequest } from '../../src/http/request.ts';
import { respond } from '../../src/http/respond.ts';
import { startMiddlewares } from '../helpers/http-middlewares.ts';
import { head, openRaw } from '../helpers/http-raw.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('request facts');
const proxies = createProxies([]);

/** Serves one request, looks at its facts and answers with what was seen. */
async function look(headers: Record<string, string>, see: (facts: HttpRequest) => unknown): Promise<unknown> {
  const app = await startMiddlewares((context) =>
    respond(context, json(200, { seen: see(new HttpRequest(context, proxies)) })),
  );
  const { body } = await app.ask('GET', '/', { headers });
  app.close();
  return body.seen;
}

test('tell who asks, with which headers', async () => {
  const seen = await look({ origin: 'http://x.example', 'x-request-id': 'r1' }, (facts) => {
    return [facts.id, facts.address, facts.isLocal, facts.origin, facts.headers.origin];
  });
  assert.equal(seen, ['r1', '127.0.0.1', true, 'http://x.example', 'http://x.example']);
});

for (const [accept, wants] of [
  ['text/event-stream', true],
  ['text/event-stream, application/json', true],
  ['text/event-stream, */*', true],
  ['application/json, text/event-stream', false],
  ['application/json', false],
  ['*/*', false],
  ['text/*', false],
  ['application/json;q=0.5, text/event-stream', true],
  ['text/event-stream;q=0.5, application/json', false],
  ['text/event-stream;q=0', false],
] as const) {
  test(`take "${accept}" for ${wants ? 'events' : 'JSON'}`, async () => {
    assert.is(await look({ accept }, (facts) => facts.wantsEventStream), wants);
  });
}

test('make a signal only once, abort it when the client leaves, and tell at once of one that has left', async () => {
  const signal = Promise.withResolvers<AbortSignal>();
  const told = Promise.withResolvers<void>();
  const app = await startMiddlewares(async (context) => {
    const facts = new HttpRequest(context, proxies);
    assert.is(facts.signal, facts.signal);
    signal.resolve(facts.signal);
    if (!context.res.closed) await once(context.res, 'close');
    facts.onGone(told.resolve);
  });
  const socket = await openRaw(app.port);
  socket.write(head('GET /'));
  const made = await signal.promise;
  assert.not(made.aborted);
  socket.destroy();
  await told.promise;
  assert.ok(made.aborted);
  app.close();
});

test('say nothing of leaving when the answer is complete, neither then nor later', async () => {
  let isGone = false;
  const closed = Promise.withResolvers<void>();
  const app = await startMiddlewares((context) => {
    const facts = new HttpRequest(context, proxies);
    const gone = () => {
      isGone = true;
    };
    facts.onGone(gone);
    context.res.once('close', () => {
      facts.onGone(gone);
      closed.resolve();
    });
    respond(context, json(200, {}));
  });
  await app.ask('GET', '/');
  await closed.promise;
  assert.not(isGone);
  app.close();
});

test('count for the caller', async () => {
  const counted: number[] = [];
  const limiter = {
    take: ({ hourlyLimit: limit = 0 }: Principal, count = 1) => {
      counted.push(count);
      return { limit, remaining: limit - count, resetAtSeconds: 1_800_000_000 };
    },
    peek: () => undefined,
  };
  const app = await startMiddlewares((context) => {
    context.state.principal = { ...ANONYMOUS, hourlyLimit: 9 };
    new HttpRequest(context, proxies).consume(limiter, 4);
    respond(context, json(200, {}));
  });
  assert.is((await app.ask('GET', '/')).headers.get('x-ratelimit-remaining'), '5');
  assert.equal(counted, [4]);
  app.close();
});

test('of a call end once, with its arguments, and keep none of them', () => {
  const ends: unknown[] = [];
  const request = { method: 'tools/call', params: { name: 'echo', arguments: { message: 'a secret' } } };
  const report = new HttpCallReport(request, ({ outcome, arguments: sent }) => ends.push([outcome, sent]));
  report.ended({ kind: 'cancelled' });
  report.ended({ kind: 'failed', code: 'INTERNAL_ERROR' });
  assert.equal([ends, report.arguments], [[['cancelled', { message: 'a secret' }]], undefined]);
});

test.run();

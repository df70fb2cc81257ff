// koa-body is loaded by the first request that needs it, a part in each turn of the event loop.

import * as assert from 'uvu/assert';
import { RateLimiter } from '../../../src/auth/limits/rate-limiter.ts';
import { UserShares } from '../../../src/domain/memory/user-shares.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../../src/domain/time/task-scheduler.ts';
import { HeldBodies } from '../../../src/http/body/held-bodies.ts';
import { BODY_MODULES, koaBodyReader } from '../../../src/http/body/readers.ts';
import { body } from '../../../src/http/middleware/body.ts';
import { json } from '../../../src/http/replies/reply.ts';
import { respond } from '../../../src/http/replies/respond.ts';
import { startMiddlewares } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('loading koa-body');

test('takes a turn of the event loop for each part, once', async () => {
  let turns = 0;
  const read = koaBodyReader(async () => {
    turns += 1;
  });
  const held = new HeldBodies(new UserShares(1_000, 1_000));
  const costs = {
    held,
    limiter: new RateLimiter(systemClock),
    scheduler: new TaskScheduler(),
    clock: systemClock,
  };
  const app = await startMiddlewares(body(read, { kind: 'json', maxBytes: 100 }, costs), (context) =>
    respond(context, json(200, context.state.body)),
  );
  try {
    for (const sent of ['{"a":1}', '{"b":2}']) {
      const headers = { 'content-type': 'application/json' };
      const { text } = await app.ask('POST', '/', { body: sent, headers });
      assert.is(text, sent);
      assert.is(turns, BODY_MODULES.length);
    }
  } finally {
    await app.close();
  }
});

test('knows parts that are installed', async () => {
  for (const part of BODY_MODULES) assert.ok(Object.keys(await import(part)).length > 0, part);
});

test.run();

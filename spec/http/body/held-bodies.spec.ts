// Clients that leave between two steps of a request: what was counted for their bodies is given back exactly once.

import { once } from 'node:events';
import { connect } from 'node:net';
import * as assert from 'uvu/assert';
import type { RateLimiter } from '../../../src/auth/auth.ts';
import type { Principal } from '../../../src/domain/account.ts';
import { HeldBodies } from '../../../src/http/body/held-bodies.ts';
import { readDirect } from '../../../src/http/body/read.ts';
import { body } from '../../../src/http/middleware/body.ts';
import type { HttpMiddleware } from '../../../src/http/request.ts';
import { ClientGone } from '../../../src/http/request.ts';
import { startMiddlewares } from '../../helpers/http-middlewares.ts';
import { head } from '../../helpers/http-raw.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('held bodies');
const KB = 1_000;
const BYTES = 200 * KB;
const KEY = {
  kind: 'api-key',
  id: 'k',
  name: 'k',
  scopes: new Set(),
  hourlyLimit: 100,
} as const satisfies Principal;
const WINDOW = { limit: 100, remaining: 50, resetAtSeconds: 0 };

test('a client that leaves before its body is read, or while it is charged, leaves nothing counted', async () => {
  for (const leavesAt of ['before', 'charge'] as const) {
    const held = new HeldBodies({ totalBytes: 1_000 * KB, ownerBytes: 1_000 * KB });
    const { promise: thrown, resolve } = Promise.withResolvers<unknown>();
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
    let gone: Promise<unknown> = Promise.resolve();
    const limiter: RateLimiter = {
      take: async () => {
        if (leavesAt === 'charge') await gone;
        return WINDOW;
      },
      peek: () => WINDOW,
    };
    const first: HttpMiddleware = async (context, next) => {
      context.state.principal = KEY;
      gone = once(context.res, 'close');
      arrive();
      if (leavesAt === 'before') await gone;
      await Promise.resolve(next()).then(
        () => resolve('it was read'),
        (reason: unknown) => {
          resolve(reason);
          throw reason;
        },
      );
    };
    const app = await startMiddlewares(first, body(readDirect(BYTES), BYTES, 'bytes', { held, limiter }));
    const socket = connect(app.port, '127.0.0.1');
    socket.write(head('POST /', { 'Content-Type': 'application/json', 'Content-Length': String(BYTES) }));
    await arrived;
    socket.destroy();
    assert.instance(await thrown, ClientGone, leavesAt);
    assert.is(held.bytes, 0, leavesAt);
    for (let upload = 0; upload < 2; upload += 1) held.upload(KEY)();
    await app.close();
  }
});

test('a body that is kept only after its response is over is not given back twice', () => {
  const held = new HeldBodies({ totalBytes: 1_000, ownerBytes: 1_000 });
  const one = held.open(KEY);
  one.add(600);
  one.release();
  const release = one.keep();
  release();
  release();
  assert.is(held.bytes, 0);
});

test.run();

// Progress tokens that the gateway adds to calls, at each door, for HTTP servers of both eras. Source: ADR 40.

import * as assert from 'uvu/assert';
import type { GatewayOptions } from '../../../src/gateway/gateway-types.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { modernRequest, openSession, postTo } from './post.ts';

const test = suite('progress tokens', { timeoutMs: 60_000 });
const EVENTS = { accept: 'text/event-stream' };

for (const era of ['legacy', 'modern'] as const) {
  test(`without a wish for progress a call has no token, at any door: ${era} server`, async () => {
    const { metaOf, app, close } = await start(era);
    const seen = [await metaOf(() => rest(app))];
    for (const template of ['t', undefined]) {
      const name = template === undefined ? 't__echo' : 'echo';
      const params = { name, arguments: { text: 'x' } };
      const headers = await openSession(app.gateway, template);
      const message = { method: 'tools/call', params };
      seen.push(await metaOf(() => postTo(app.gateway, { template, message, headers })));
      const modern = modernRequest('tools/call', params);
      seen.push(await metaOf(() => postTo(app.gateway, { template, ...modern })));
    }
    assert.is(seen.length, 5);
    for (const meta of seen) {
      assert.is(Object(meta).progressToken, undefined);
      if (era === 'legacy') assert.is(meta, undefined);
    }
    await close();
  });

  test(`an event stream and a short timeout ask for progress: ${era} server`, async () => {
    const { metaOf, app, close } = await start(era);
    assert.type(Object(await metaOf(() => rest(app, EVENTS))).progressToken, 'number');
    await close();
    const short = await start(era, { policy: { callTimeoutMs: 59_999 } });
    assert.type(Object(await short.metaOf(() => rest(short.app))).progressToken, 'number');
    await short.close();
  });
}

function rest(app: Awaited<ReturnType<typeof startApp>>, headers = {}) {
  return app.ask('POST', '/mcp/t/tools/call', { body: { name: 'echo', arguments: { text: 'x' } }, headers });
}

/** `metaOf`: the `_meta` that the server got with the call that `act` makes. */
async function start(era: 'legacy' | 'modern', gateway: GatewayOptions = {}) {
  const server = await startHttpServer({ era });
  const app = await startApp({ gateway });
  await app.gateway.register('t', { endpoint: server.url }, { waitMs: 5_000 });
  const calls = () => server.requests.filter(({ message }) => message?.method === 'tools/call');
  const metaOf = async (act: () => Promise<unknown>): Promise<unknown> => {
    const before = calls().length;
    await act();
    assert.is(calls().length, before + 1);
    return calls().at(-1)?.message?.params?._meta;
  };
  const close = async () => {
    await app.close();
    await server.close();
  };
  return { app, metaOf, close };
}

test.run();

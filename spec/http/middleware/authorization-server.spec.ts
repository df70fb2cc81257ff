// The bounds of requests that the authorization server answers itself.

import type { ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import { createProxies } from '../../../src/http/callers/proxies.ts';
import { authorizationServerRequests } from '../../../src/http/middleware/authorization-server.ts';
import { head, openRaw } from '../../helpers/clients/raw-http.ts';
import { startMiddlewares } from '../../helpers/http/middlewares.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('requests of the authorization server');

test('an answer that its client does not read has the write timeout of all answers', async () => {
  const limited = Promise.withResolvers<boolean>();
  const server = {
    routeOf: () => '/oauth/*',
    isForeign: () => false,
    serve: async ({ response }: { readonly response: ServerResponse }) => {
      response.end(Buffer.alloc(50_000_000));
    },
  };
  const serve = authorizationServerRequests(server, createProxies([]));
  const app = await startMiddlewares(async (context, next) => {
    await serve(context, next);
    limited.resolve(context.res.listenerCount('timeout') > 0);
  });
  const socket = await openRaw(app.port);
  socket.write(head('GET /oauth/device'));
  assert.ok(await limited.promise);
  socket.destroy();
  app.close();
});

test.run();

// The app while the gateway starts: it has no routes.

import type { RequestListener } from 'node:http';
import Koa from 'koa';
import type { KoaApp } from './context.ts';
import { refuse } from './middleware/error-answers.ts';
import { identify, requestIds } from './middleware/request-id.ts';
import { respond } from './replies/respond.ts';
import { ALIVE, startingReply } from './routes/gateway/readiness.ts';

/** Answers requests until the gateway is created: 503 with Retry-After, and `/livez` as usual. It writes no log lines. */
export function createStartingApp(): RequestListener {
  const app: KoaApp = new Koa();
  const newId = requestIds();
  app.use((context) => {
    identify(context, newId);
    if (context.path === '/livez') respond(context, ALIVE);
    else refuse(context, startingReply(context.state.requestId));
  });
  return app.callback();
}

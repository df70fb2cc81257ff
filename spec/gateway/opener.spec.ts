// The function that opens instances: it finds handlers that came after it was made, and goes nowhere that is denied.

import * as assert from 'uvu/assert';
import { openerOf } from '../../src/gateway/opener.ts';
import type { InProcessHandler } from '../../src/transports/transport.ts';
import { definition } from '../actors/instances/instance-stage.ts';
import { startHttpServer } from '../fixtures/http-server.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('opener');
const { signal } = new AbortController();
const handlers = new Map<string, InProcessHandler>();

test('opens a handler that is registered later', async () => {
  const open = openerOf({ deniedNetworks: [], handlers });
  const instance = definition({ transport: 'in-process' });
  assert.is(await codeOf(open(instance, signal)), 'BACKEND_UNAVAILABLE');
  handlers.set(instance.serverId, () => ({}));
  const transport = await open(instance, signal);
  assert.is(transport.kind, 'in-process');
  await transport.close();
});

test('opens nothing in a denied network', async () => {
  const server = await startHttpServer();
  const instance = definition({ transport: 'http', endpoint: server.url });
  const denied = openerOf({ deniedNetworks: ['127.0.0.0/8'], handlers });
  assert.is(await codeOf(denied(instance, signal)), 'BACKEND_UNAVAILABLE');
  const transport = await openerOf({ deniedNetworks: [], handlers })(instance, signal);
  await transport.close();
  await server.close();
});

test.run();

// The function that opens instances: it finds handlers that came after it was made, and goes nowhere that is denied.

import * as assert from 'uvu/assert';
import { openerOf } from '../../src/gateway/opener.ts';
import type { InProcessHandler, Upstream } from '../../src/transports/transport.ts';
import { definition } from '../actors/instances/instance-stage.ts';
import { startHttpServer } from '../fixtures/http-server.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';
import { fixture } from '../transports/stdio/open-stdio.ts';

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

test('lets an instance run as many programs for single clients as was said', async () => {
  const { command, args } = fixture();
  const instance = definition({ transport: 'stdio', command, args });
  const transport = await openerOf({ deniedNetworks: [], handlers, mostOwn: 1 })(instance, signal);
  let upstream: Upstream | undefined;
  try {
    const profile = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'x', version: '1' },
    };
    upstream = await transport.openUpstream(profile, signal, 'user:ann');
    assert.is(await codeOf(transport.openUpstream(profile, signal, 'user:bob')), 'QUEUE_FULL');
  } finally {
    await transport.close();
    await upstream?.close();
  }
});

test.run();

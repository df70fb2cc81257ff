import { once } from 'node:events';
import { createServer } from 'node:http';
import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { Gateway } from '../../../src/gateway.ts';
import { createApp } from '../../../src/http/app.ts';
import { MemoryStore } from '../../../src/persistence/memory-store.ts';
import { anonymousAuth } from '../../helpers/anonymous-auth.ts';
import { fakeMcp } from '../../helpers/fake-mcp.ts';
import { portOf, send, startApp } from '../../helpers/http-app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the routes of liveness');

test('are 200 while the gateway runs', async () => {
  const app = await startApp();
  const live = await app.ask('GET', '/livez');
  assert.equal([live.status, live.body], [200, { status: 'alive' }]);
  const ready = await app.ask('GET', '/readyz');
  assert.equal([ready.status, ready.body], [200, { status: 'ready' }]);
  await app.close();
});

test('say that nothing more should be sent once it closes, and that it is alive', async () => {
  const app = await startApp();
  await app.gateway.close({ graceMs: 0 });
  const ready = await app.ask('GET', '/readyz');
  assert.equal(
    [ready.status, ready.body.status, ready.body.error_code],
    [503, 'shutting down', 'SHUTTING_DOWN'],
  );
  assert.is((await app.ask('GET', '/livez')).status, 200);
  await app.close();
});

test('say that it starts while it loads what was registered', async () => {
  const gateway = new Gateway(new MemoryStore(), {});
  const app = createApp(gateway, {
    log: pino({ level: 'silent' }),
    auth: anonymousAuth(),
    mcp: fakeMcp(),
    isPublic: false,
    corsOrigins: [],
    allowedCommands: [],
    definitions: [],
    allowedHosts: [],
    allowedOrigins: [],
    trustedProxies: [],
    build: '0.0.0-spec',
  });
  const server = createServer(app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { status, body } = await send('GET', `http://127.0.0.1:${portOf(server)}/readyz`);
  assert.equal([status, body.status, body.detail], [503, 'starting', 'The gateway is starting.']);
  assert.is(body.error_code, 'NO_HEALTHY_INSTANCE');
  server.close();
  await gateway.close();
});

test.run();

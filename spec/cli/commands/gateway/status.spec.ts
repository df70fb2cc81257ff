// `gateway status` and `gateway health`, also without credentials.

import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { suite } from '../../../helpers/suite.ts';
import {
  complaint,
  gatewayFor,
  HANDLER,
  openSession,
  printed,
  runCommand,
  serverFor,
} from '../against-gateway.ts';

const test = suite('gateway status and health');
const gateway = gatewayFor(test, { withAccounts: true }, ({ server }) =>
  server.gateway.register('demo', { handler: HANDLER }, { waitMs: 5_000 }),
);
const open = gatewayFor(test, {}, ({ server }) =>
  server.gateway.register('demo', { handler: HANDLER }, { waitMs: 5_000 }),
);
const serve = serverFor(test);
const nobody = { env: { STAGEDOOR_API_KEY: '' } };

test('status shows the gateway, its templates and the sessions of MCP clients', async () => {
  const out = await printed(open.run('gateway status'));
  assert.match(out, new RegExp(`^gateway +${open.url}$`, 'm'));
  assert.match(out, /^version +API \d+\.\d+\.\d+, stagedoor \S+$/m);
  assert.match(out, /^status +healthy$/m);
  assert.match(out, /^instances +1 of 1 healthy$/m);
  await openSession(open.url, 'demo');
  const after = (await open.run('gateway status')).out;
  assert.match(after, /^sessions +1 of at most 10000, 0 moved, 0 lost$/m);
  assert.match(after, /^dedicated processes +0 running, 0 lost$/m);
  assert.match(after, /^TEMPLATE +HEALTHY +STRATEGY +SESSIONS +DEDICATED PROCESSES$/m);
  // The catalogue has more templates, without instances.
  assert.not.match(after, /0 of 0/);
  assert.match(after, /^demo +1 of 1 +round_robin +1 +0$/m);
  const { url, health, stats } = JSON.parse((await open.run('gateway status --json')).out);
  assert.equal([url, health.status, stats.total_requests], [open.url, 'healthy', 0]);
});

test('status shows only the health without a login', async () => {
  const { code, out, err } = await gateway.runAt(nobody, 'gateway status');
  assert.is(code, 0);
  assert.match(out, /^status +healthy$/m);
  assert.not.match(out, 'requests');
  const line = `only its health is shown: not logged in at ${gateway.url}; run "npx stagedoor gateway login <name> --url ${gateway.url}", or set STAGEDOOR_API_KEY`;
  assert.is(err, line);
  const asJson = await gateway.runAt(nobody, 'gateway status --json');
  assert.equal(Object.keys(JSON.parse(asJson.out)), ['url', 'health']);
  assert.match((await gateway.run('gateway status')).out, /^requests +0, 0 in flight$/m);
});

test('status shows only the health with a key that may not read more', async () => {
  const env = { STAGEDOOR_API_KEY: await gateway.newKey('tools:call') };
  const { code, out, err } = await gateway.runAt({ env }, 'gateway status');
  assert.is(code, 0, err);
  assert.match(out, /^status +healthy$/m);
  assert.match(
    err,
    /^only its health is shown: .*; the API key \w+ in STAGEDOOR_API_KEY was used \(INSUFFICIENT_PERMISSIONS\)$/,
  );
});

test('show unhealthy instances with their reason', async () => {
  const { gateway: facade } = gateway.server;
  const down = firstValueFrom(facade.on('instance.unhealthy'));
  await facade.register('far', { id: 'two', endpoint: 'http://127.0.0.1:9/mcp' });
  await down;
  const line = /^NOT HEALTHY HERE +STATE +REASON\nfar\/two +unhealthy +connection refused$/m;
  assert.match((await gateway.run('gateway status')).out, line);
  const far = await gateway.run('gateway health far');
  assert.is(far.code, 1);
  const table = /^far: 0 of 1 healthy\nINSTANCE +STATE +LATENCY +REASON\ntwo +unhealthy +connection refused$/;
  assert.match(far.out, table);
  assert.match(await complaint(gateway.run('gateway health none')), /\(TEMPLATE_NOT_FOUND\)$/);
});

test('health shows the health of the gateway without a login, and fails when nothing is healthy', async () => {
  const out = await printed(gateway.runAt(nobody, 'gateway health'));
  assert.match(
    out,
    /^status +degraded\nversion +.*\nuptime +\d+ s\ndatabase +connected\ninstances +1 of 2 healthy$/,
  );
  const { status, instances } = JSON.parse((await gateway.runAt(nobody, 'gateway health --json')).out);
  assert.equal([status, instances.total], ['degraded', 2]);
  assert.match(await complaint(gateway.runAt(nobody, 'gateway health demo')), 'not logged in');
  const { gateway: facade } = gateway.server;
  for (const { id } of facade.template('demo').instances) await facade.deregister('demo', id);
  const sick = await gateway.run('gateway health');
  assert.is(sick.code, 1);
  assert.match(sick.out, /^status +unhealthy$/m);
});

test('status ends with exit code 0 only for a healthy or degraded gateway', async () => {
  for (const [status, expected] of Object.entries({ healthy: 0, degraded: 0, unhealthy: 1 })) {
    const health = { status, build: '1', instances: {} };
    const url = await serve(({ url }, response) => {
      response.writeHead(url === '/gateway/health' ? 200 : 401).end(JSON.stringify(health));
    });
    const { code, out } = await runCommand(['gateway', 'status', '--url', url]);
    assert.is(code, expected, status);
    assert.match(out, new RegExp(`^status +${status}$`, 'm'));
  }
});

test.run();

// `gateway stats`, once or redrawn until a signal.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor, printed, serverFor } from './against-gateway.ts';

const test = suite('gateway stats');
const handler = () => ({ content: [] });
const gateway = gatewayFor(test, {}, async ({ server: { gateway: facade } }) => {
  await facade.register('demo', { id: 'one', handler }, { waitMs: 5_000 });
  for (let calls = 0; calls < 3; calls += 1) await facade.ask('demo', { method: 'prompts/get', params: {} });
});
const serve = serverFor(test);

test('shows sums, and the statistics of each instance', async () => {
  const out = await printed(gateway.run('gateway stats'));
  assert.match(out, /^requests +3, 0 in flight$/m);
  assert.match(out, /^failed +0\.0 %$/m);
  assert.match(out, /^TEMPLATE +INSTANCE +STATE +CALLS +FAILED +TIME +IN FLIGHT +SESSIONS$/m);
  assert.match(out, /^demo +one +healthy +3 +0\.0 % +[\d.]+ ms +0 +0$/m);
  assert.is(JSON.parse((await gateway.run('gateway stats --json')).out).total_requests, 3);
});

test('shows the instances of one template with --template, without the sums of the gateway', async () => {
  const out = await printed(gateway.run('gateway stats --template demo'));
  assert.match(out, /^TEMPLATE +INSTANCE [^\n]+\ndemo +one +healthy +3 [^\n]+$/);
  const part = JSON.parse((await gateway.run('gateway stats --template demo --json')).out);
  const shown = [Object.keys(part), Object.keys(part.templates), part.instances.one.requests];
  assert.equal(shown, [['templates', 'instances'], ['demo'], 3]);
  assert.match(await complaint(gateway.run('gateway stats --template dem')), 'did you mean "demo"?');
});

test('redraws with calls per second until a signal; a new instance of the same name counts from zero', async () => {
  const drawn: string[] = [];
  const { gateway: facade } = gateway.server;
  let renewed: Promise<unknown> | undefined;
  const onPrint = (text: string) => {
    drawn.push(text);
    if (drawn.length === 2) process.emit('SIGINT', 'SIGINT');
    else
      renewed = facade.deregister('demo', 'one').then(() => facade.register('demo', { id: 'one', handler }));
  };
  await printed(gateway.runAt({ columns: 120, onPrint }, 'gateway stats --watch'));
  await renewed;
  assert.not.match(drawn[0] ?? '', 'PER SECOND');
  assert.match(drawn[1] ?? '', /^demo +one +healthy +0 +0\.0 +0\.0 % /m);
  assert.match(drawn[1] ?? '', `${gateway.url} at `);
});

test('ends at a signal while the gateway does not answer', async () => {
  let requests = 0;
  const url = await serve((_, response) => {
    requests += 1;
    if (requests <= 2) response.end('{}');
    else process.emit('SIGINT', 'SIGINT');
  });
  await printed(gateway.runAt({ columns: 120 }, 'gateway stats --watch --url', url));
  assert.is(requests, 3);
});

test('refuses --watch without a terminal or with --json', async () => {
  const piped = await complaint(gateway.run('gateway stats --watch'), 2);
  assert.match(piped, /^stagedoor: --watch requires a terminal[^\n]+$/);
  const asJson = await complaint(gateway.runAt({ columns: 80 }, 'gateway stats --watch --json'), 2);
  assert.is(asJson, 'stagedoor: --watch cannot be combined with --json');
});

test.run();

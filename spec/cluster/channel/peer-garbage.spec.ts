// Requests over the peer channel leave no garbage that only a full collection frees, at both ends, which share this process. Source: ADR 79.
// @own-process: it measures the heap.

import { setFlagsFromString } from 'node:v8';
import { lastValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { InstanceListener } from '../../../src/cluster/channel/instances/instance-listener.ts';
import { JsonText } from '../../../src/domain/json/json.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { serving, text } from '../../helpers/backends/function-backend.ts';
import { bytesLeftPerCall } from '../../helpers/garbage.ts';
import { suite } from '../../helpers/suite.ts';
import { ask, Deployment } from './peer-nodes.ts';

const CALLERS = 16;
const CALLS = 4_000;
const [A, B] = ['AAAAAAAA', 'BBBBBBBB'] as const;

setFlagsFromString('--no-allocation-site-pretenuring'); // as `gateway start`

const test = suite('garbage of the peer channel', { timeoutMs: 120_000 });
let deployment: Deployment;
test.before.each(() => {
  deployment = new Deployment();
});
test.after.each(() => deployment.close());

test('requests of sessions leave nothing to full collections', async () => {
  const a = await deployment.node(A);
  await deployment.node(B, {
    serve: (request, response) => request.resume().on('end', () => response.end('{"answer":1}')),
  });
  await assertLeavesNothing(async () => assert.is((await ask(a, B, { body: '{"question":1}' })).status, 200));
});

test('calls of a program leave nothing to full collections', async () => {
  const gateway = await createGateway();
  await gateway.register(
    'demo',
    { id: 'one', handler: serving({ echo: () => text('x') }) },
    { waitMs: 5_000 },
  );
  const a = await deployment.node(A);
  await deployment.node(B, { instances: new InstanceListener(gateway.internals.host, () => {}) });
  const { definition } = gateway.instance('demo', 'one');
  const openLink = a.peers.openInstance({ ...definition, nodeId: `node ${B}` });
  const transport = await openLink(new AbortController().signal);
  const params = { name: 'echo', arguments: JsonText.ofText('{}') };
  const request = { method: 'tools/call', params, callerId: 'ada' };
  await assertLeavesNothing(async () =>
    assert.is((await lastValueFrom(transport.exchange(request))).kind, 'result'),
  );
  await transport.close();
  await gateway.close({ graceMs: 0 });
});

test.run();

async function assertLeavesNothing(call: () => Promise<void>): Promise<void> {
  const [left, rounds] = await bytesLeftPerCall((count) => callAgain(call, count), CALLS);
  assert.ok(left < 300, rounds);
}

async function callAgain(call: () => Promise<void>, count: number): Promise<void> {
  const share = Math.ceil(count / CALLERS);
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      for (let left = share; left > 0; left -= 1) await call();
    }),
  );
}

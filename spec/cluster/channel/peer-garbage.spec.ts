// Requests over the peer channel leave no garbage that only a full collection frees, at both ends, which share this process. Source: ADR 79.
// @own-process: it measures the heap.

import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { lastValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { InstanceListener } from '../../../src/cluster/channel/instances/instance-listener.ts';
import { JsonText } from '../../../src/domain/json/json.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { serving, text } from '../../helpers/backends/function-backend.ts';
import { collectGarbage } from '../../helpers/garbage.ts';
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
  await leavesNothing(async () => assert.is((await ask(a, B, { body: '{"question":1}' })).status, 200));
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
  const way = a.peers.openInstance({ ...definition, nodeId: `node ${B}` });
  const transport = await way(new AbortController().signal);
  const params = { name: 'echo', arguments: JsonText.ofText('{}') };
  const request = { method: 'tools/call', params, callerId: 'ada' };
  await leavesNothing(async () =>
    assert.is((await lastValueFrom(transport.exchange(request))).kind, 'result'),
  );
  await transport.close();
  await gateway.close({ graceMs: 0 });
});

test.run();

async function leavesNothing(call: () => Promise<void>): Promise<void> {
  await callAgain(call, CALLS); // statistics and compiled code grow at first
  for (let time = 0; time < 2; time += 1) await collectAmidCalls(call);
  // A full collection that V8 begins by itself distorts one round.
  const rounds = [await oldBytes(call), await oldBytes(call), await oldBytes(call)];
  const [, left = Number.NaN] = rounds.sort((a, b) => a - b);
  assert.ok(left < 300, `${rounds.join(', ')} bytes per call`);
}

/** The bytes that each call leaves in the old generation. */
async function oldBytes(call: () => Promise<void>): Promise<number> {
  const before = process.memoryUsage().heapUsed;
  await callAgain(call, CALLS);
  for (let time = 0; time < 3; time += 1) {
    await turn();
    collectGarbage({ type: 'minor' });
  }
  return (process.memoryUsage().heapUsed - before) / CALLS;
}

/** A full collection while calls are in flight: the objects that hold them are old from then on. */
async function collectAmidCalls(call: () => Promise<void>): Promise<void> {
  const calls = callAgain(call, 200);
  await turn();
  collectGarbage();
  await calls;
  collectGarbage();
}

async function callAgain(call: () => Promise<void>, count: number): Promise<void> {
  const share = Math.ceil(count / CALLERS);
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      for (let left = share; left > 0; left -= 1) await call();
    }),
  );
}

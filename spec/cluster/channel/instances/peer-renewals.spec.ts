// Instances that end at their node and start again, as the other nodes see them: calls there wait, as at the node itself.

import { setImmediate as settled } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { InstanceListener } from '../../../../src/cluster/channel/instances/instance-listener.ts';
import { createGateway, type Gateway } from '../../../../src/gateway/gateway.ts';
import { HeldTool, serving, text } from '../../../helpers/backends/function-backend.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { suite } from '../../../helpers/suite.ts';
import { Deployment, type PeerNode } from '../peer-nodes.ts';

const test = suite('renewals of instances of other nodes');
const [A, B] = ['AAAAAAAA', 'BBBBBBBB'] as const;
let deployment: Deployment;
/** The node that runs the instance, and another one that uses it. */
let home: Gateway;
let other: Gateway;
let held: HeldTool;

test.before.each(async () => {
  held = new HeldTool();
  home = await createGateway();
  const handler = serving({ held: held.body, echo: () => text('here') });
  await home.register('demo', { id: 'one', handler }, { waitMs: 5_000 });
  deployment = new Deployment();
  const b: PeerNode = await deployment.node(B, {
    instances: new InstanceListener(home.internals.host, (refusal) => b.refusals.push(refusal)),
  });
  const a = await deployment.node(A);
  other = await createGateway({
    node: { id: `node ${A}` },
    others: { openElsewhere: (definition) => a.peers.openInstance(definition) },
  });
  await other.register('demo', { id: 'one', command: 'run', node: `node ${B}` }, { waitMs: 5_000 });
});
test.after.each(async () => {
  await other.close({ graceMs: 0 });
  await deployment.close();
  await home.close({ graceMs: 0 });
});

test('a call at another node waits while the instance restarts at its own, however long its last call takes', async () => {
  const last = callThere('held');
  await becomes(() => held.waiting, 1);
  home.restart('demo', 'one');
  await becomes(() => other.instance('demo', 'one').snapshot.state, 'draining');
  const waiting = callThere('echo');
  assert.is(await Promise.race([waiting, settled('it waits')]), 'it waits');
  held.answerAll();
  await last;
  assert.match(JSON.stringify(await waiting), 'here');
});

test('a call at another node is refused at once while somebody drains the instance', async () => {
  home.drain('demo', 'one');
  await becomes(() => other.instance('demo', 'one').snapshot.state, 'draining');
  const thrown = await callThere('echo').catch((error: unknown) => error);
  assert.is(Object(thrown).code, 'NO_HEALTHY_INSTANCE');
  home.resume('demo', 'one');
  await becomes(() => other.instance('demo', 'one').snapshot.state, 'healthy');
  assert.match(JSON.stringify(await callThere('echo')), 'here');
});

test('calls at every node are refused at once when somebody drains an instance that restarts', async () => {
  const last = callThere('held');
  await becomes(() => held.waiting, 1);
  home.restart('demo', 'one');
  await becomes(() => other.instance('demo', 'one').snapshot.state, 'draining');
  const here = home.call('demo', 'echo', {}, { callerId: 'ada' });
  const waiting = [here, callThere('echo')].map((call) => call.catch((error: unknown) => error));
  assert.is(await Promise.race([...waiting, settled('they wait')]), 'they wait');
  home.drain('demo', 'one');
  for (const thrown of await Promise.all(waiting)) assert.is(Object(thrown).code, 'NO_HEALTHY_INSTANCE');
  held.answerAll();
  await last;
});

test.run();

function callThere(tool: string) {
  return other.call('demo', tool, {}, { callerId: 'ada' });
}

// Openings of instances of other nodes: which node runs a program, and what calls wait for while that is not known.

import * as assert from 'uvu/assert';
import { InstanceListener } from '../../../../src/cluster/channel/instances/instance-listener.ts';
import { type KnownNodes, Peers } from '../../../../src/cluster/channel/peers.ts';
import { channelKeys } from '../../../../src/cluster/channel/trust/channel-keys.ts';
import type { ReachableLife } from '../../../../src/cluster/reachable-life.ts';
import { GatewayError } from '../../../../src/domain/errors/errors.ts';
import { systemClock } from '../../../../src/domain/time/clock.ts';
import { createGateway, type Gateway } from '../../../../src/gateway/gateway.ts';
import type { Transport } from '../../../../src/transports/transport.ts';
import { serving } from '../../../helpers/backends/function-backend.ts';
import { becomes } from '../../../helpers/eventually.ts';
import { messageOf } from '../../../helpers/outcome.ts';
import { suite } from '../../../helpers/suite.ts';
import { knownNodesIn } from '../known-nodes.ts';
import { Deployment, forward, type PeerNode } from '../peer-nodes.ts';

const test = suite('openings of instances of other nodes');
const [A, B, C] = ['AAAAAAAA', 'BBBBBBBB', 'CCCCCCCC'] as const;
let deployment: Deployment;
let gateway: Gateway;
let a: PeerNode;
let b: PeerNode;
test.before.each(async () => {
  gateway = await createGateway();
  await gateway.register('demo', { id: 'one', handler: serving({}) }, { waitMs: 5_000 });
  deployment = new Deployment();
  a = await deployment.node(A);
  b = await deployment.node(B, {
    instances: new InstanceListener(gateway.internals.host, (refusal) => b.refusals.push(refusal)),
  });
});
test.after.each(async () => {
  await deployment.close();
  await gateway.close({ graceMs: 0 });
});

test('an opening that is cancelled while the members are read waits for no node', async () => {
  const cancelled = new AbortController();
  const { opening, alarms } = openShared({
    signal: cancelled.signal,
    refresh: async () => cancelled.abort(),
  });
  assert.match(await messageOf(opening, GatewayError), 'no node runs it now');
  assert.equal(alarms, []);
});

test('the link to a program of a silent node is refused at once, until it is heard, and calls wait for one opening only', async () => {
  deployment.silent.add(B);
  const thrown = await open().catch((error: unknown) => error);
  assert.ok(thrown instanceof GatewayError);
  assert.equal(
    [thrown.code, thrown.delivered, thrown.facts.refusal?.waitMs],
    ['BACKEND_UNAVAILABLE', 'no', 1_000],
  );
  deployment.silent.delete(B);
  await (await open()).close();
});

test('a program of any node whose node is silent is waited for until another one runs it', async () => {
  const silent: ReachableLife = { node: 'c', life: C, address: 'http://127.0.0.1:9' };
  let runner = silent;
  const moving = openShared({ runsOn: () => runner, isSilent: (life) => life === C });
  await becomes(() => moving.alarms.length, 1);
  moving.changed();
  runner = b.member;
  moving.changed();
  assert.is((await moving.opening).kind, 'in-process');
  moving.peers.close();
});

test('so is one whose node has just stopped answering, before the members know', async () => {
  const gone: ReachableLife = { node: 'c', life: C, address: 'http://127.0.0.1:9' };
  let runner = gone;
  deployment.rows.set(C, { ...b.member, ...gone });
  const moving = openShared({
    runsOn: () => runner,
    before: async (peers) => {
      await forward(Object({ peers }), C);
      await becomes(() => Object(peers.ofLife(C)).isSilent, true);
    },
  });
  await becomes(() => moving.alarms.some(({ ms }) => ms === 15_000), true);
  runner = b.member;
  moving.changed();
  assert.is((await moving.opening).kind, 'in-process');
  moving.peers.close();
});

test('calls do not wait for a program of any node that no node takes', async () => {
  const { opening, alarms } = openShared({});
  await becomes(() => alarms.length, 1);
  alarms[0]?.ring();
  const thrown = await opening.catch((error: unknown) => error);
  assert.ok(thrown instanceof GatewayError);
  assert.equal([thrown.facts.reason, thrown.facts.refusal?.waitMs], ['no node runs it now', 1_000]);
});

test.run();

/** An opening of a program of any node, among these members; `alarms`: its waits. */
function openShared({
  signal = new AbortController().signal,
  before = async () => {},
  ...others
}: Partial<Omit<KnownNodes, 'life'>> & {
  readonly signal?: AbortSignal;
  readonly before?: (peers: Peers) => Promise<void>;
}) {
  let changed = (): void => {};
  const nodes = knownNodesIn(deployment.rows, () => A, {
    knowsPrograms: true,
    runsOn: () => undefined,
    onChanged: (listener) => {
      changed = listener;
    },
    ...others,
  });
  const alarms: { readonly ms: number; readonly ring: () => void }[] = [];
  const alarm = (ms: number, ring: () => void) => {
    alarms.push({ ms, ring });
    return () => {};
  };
  const background = { ...systemClock.background, alarm };
  const keys = channelKeys([Buffer.from('a secret of these nodes, 32 bytes or more')]);
  const peers = new Peers({
    ...{ nodes, keys, hasSession: () => false, clock: { ...systemClock, background } },
  });
  const { definition } = gateway.instance('demo', 'one');
  const opening = before(peers).then(() => peers.openInstance({ ...definition, nodeId: 'any' })(signal));
  return { opening, alarms, peers, changed: () => changed() };
}

function open(): Promise<Transport> {
  const { definition } = gateway.instance('demo', 'one');
  return a.peers.openInstance({ ...definition, nodeId: `node ${B}` })(new AbortController().signal);
}

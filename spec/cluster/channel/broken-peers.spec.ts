// The peer channel with members that have the secret and are broken: what they say of themselves and answer costs the others a
// request, never more.

import type { ServerResponse } from 'node:http';
import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { frameOf } from '../../../src/cluster/channel/instances/peer-frames.ts';
import type { ServedInstances } from '../../../src/cluster/channel/peer-admission.ts';
import { PeerPings } from '../../../src/cluster/channel/peer-pings.ts';
import { channelKeys } from '../../../src/cluster/channel/trust/channel-keys.ts';
import { GatewayError } from '../../../src/domain/errors/errors.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import type { Transport } from '../../../src/transports/transport.ts';
import { definition } from '../../helpers/backends/profiles.ts';
import { becomes } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { ask, Deployment, forward, type PeerNode } from './peer-nodes.ts';

const test = suite('broken peers');
const [A, B] = ['AAAAAAAA', 'BBBBBBBB'] as const;
let deployment: Deployment;
test.before.each(() => {
  deployment = new Deployment();
});
test.after.each(() => deployment.close());

for (const address of [
  'https://10.0.0.256:8090',
  'https://[10.0.0.1,fd00::1]:8090',
  'http://b:99999',
  'b',
  '',
])
  test(`a member whose address cannot be used does not answer: "${address}"`, async () => {
    const a = await deployment.node(A);
    const b = { node: 'b', life: B, address };
    deployment.rows.set(B, b);
    const pings = new PeerPings(channelKeys([Buffer.from('a secret')]), systemClock, () => A);
    const results: string[] = [];
    pings.ping(b, (result) => results.push(result));
    await becomes(() => results, ['failed']);
    pings.close();
    const { error } = await ask(a, B, { hop: 'instance' });
    assert.equal([error?.code, error?.delivered], ['NODE_UNAVAILABLE', 'no']);
  });

test('a node that takes each token for that of another node is asked once a second, not as often as it answers', async () => {
  let requests = 0;
  const [a] = await deployment.pair((_request, response) => {
    requests += 1;
    response.writeHead(401, { 'peer-refused': 'token for another node' }).end();
  });
  const received = await forward(a, B, { untilMs: systemClock.now() + 1_500 });
  await received.over.promise;
  assert.equal([received.error?.code, received.error?.delivered], ['NODE_UNAVAILABLE', 'no']);
  assert.ok(requests <= 4, `${requests} requests`);
});

test('the first conversation that is opened ends with its stream, whatever else is said on it', async () => {
  const responses: ServerResponse[] = [];
  const a = await openedBy((response) => {
    responses.push(response);
    response.write(openedFrame('first'));
    response.write(openedFrame('second'));
  });
  const transport = await openAt(a);
  const closed = firstValueFrom(transport.closed$);
  responses[0]?.end();
  assert.is((await closed).reason, 'its node closed it');
});

for (const frame of [{ kind: 'none' }, { kind: 'failed', failure: {} }] as const)
  test(`after a refusal (${frame.kind}) nothing more is read of it`, async () => {
    const closed = Promise.withResolvers<void>();
    const a = await openedBy((response) => {
      response.once('close', closed.resolve);
      response.write(frameOf(frame));
    });
    await openAt(a).catch(() => undefined);
    await closed.promise;
  });

test('an error has no facts but those that cross, each of its form', async () => {
  const facts = {
    ...{ delivered: 'maybe', status: 99_999, retryAfterSeconds: -1, reason: {}, plainMessage: 5 },
    ...{ backendError: { code: 'x' }, refusal: { status: 503, waitMs: 1e300 }, health: 'unreachable' },
    ...{ isSessionLost: 'no', isRepaired: 1 },
  };
  const a = await openedBy((response) =>
    response.end(frameOf({ kind: 'failed', failure: { code: 'toString', message: 'm', facts } })),
  );
  const thrown = await openAt(a).catch((error: unknown) => error);
  assert.instance(thrown, GatewayError);
  const { code, status, message, facts: known } = thrown as GatewayError;
  assert.equal([code, status, message, known], ['BACKEND_UNAVAILABLE', 503, 'm', { delivered: 'no' }]);
});

test.run();

/** The node A; a node B answers the opening of a conversation like this. */
async function openedBy(answer: (response: ServerResponse) => void): Promise<PeerNode> {
  const request: ServedInstances['request'] = (received, response) => {
    received.resume();
    response.writeHead(200);
    answer(response);
  };
  const instances = { request, exchange: () => {} };
  await deployment.node(B, { instances });
  return deployment.node(A);
}

function openAt({ peers }: PeerNode): Promise<Transport> {
  const open = peers.openInstance(definition('one', { nodeId: `node ${B}` }));
  return open(new AbortController().signal);
}

function openedFrame(conversation: string): Buffer {
  const peer = {
    era: 'legacy',
    protocolVersion: '2025-11-25',
    serverInfo: { name: 'x', version: '1' },
  } as const;
  return frameOf({ kind: 'opened', conversation, peer: { ...peer, capabilities: {}, greeting: {} } });
}

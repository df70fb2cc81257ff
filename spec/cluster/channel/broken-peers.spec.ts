// The peer channel with members that have the secret and are broken: what they say of themselves and answer costs the others a
// request, never more.

import * as assert from 'uvu/assert';
import { PeerPings } from '../../../src/cluster/channel/peer-pings.ts';
import { channelKeys } from '../../../src/cluster/channel/trust/channel-keys.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { becomes } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { ask, Deployment } from './peer-nodes.ts';

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

test.run();

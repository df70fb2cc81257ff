// Questions of other nodes that this node fails to answer. The answers themselves: the specs beside this one.

import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as assert from 'uvu/assert';
import { LoginThrottle } from '../../../src/auth/accounts/login-throttle.ts';
import { shareWithPeers } from '../../../src/cluster/sharing/share-with-peers.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('questions of other nodes');

test('a question whose answer fails ends without one, and the process goes on', async () => {
  let areNodesUnknown = false;
  const serve = shareWithPeers({
    limiter: { shareIn: () => {} },
    calls: { shareIn: () => {} },
    logins: new LoginThrottle(() => 0),
    tasks: {
      setPeers: () => {},
      lookUp: () => {
        throw new Error('no task can be found');
      },
    },
    process: 'A',
    peers: { ofLife: () => undefined },
    nodes: () => {
      if (areNodesUnknown) throw new Error('the nodes are unknown');
      return [];
    },
    clock: systemClock,
  });
  const principal = { id: 'user:1', name: 'Ada', kind: 'user', scopes: new Set<never>() } as const;
  const server = createServer((request, response) => serve(request, response, principal)).listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const answerTo = (path: string) =>
    new Promise((resolve) => {
      const request = get({ port, path, agent: false }, (response) => resolve(response.resume().statusCode));
      request.on('error', () => resolve('none'));
    });
  try {
    const limit = '/peer/limit?process=B&limit=10&held=0&endsInMs=1&wanted=1&isFirst=1';
    assert.is(await answerTo('/peer/task?id=task'), 'none');
    assert.is(await answerTo(limit), 200);
    areNodesUnknown = true;
    assert.is(await answerTo(limit), 'none');
  } finally {
    server.close();
  }
});

test.run();

// How the bridge behaves towards a gateway that is away or busy, or refuses a request. The gateway is a small HTTP server.

import { setImmediate as nextTurn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { GatewayLink, LostRequest } from '../../../src/cli/bridge/gateway-link.ts';
import { CommandFailure } from '../../../src/cli/failures.ts';
import { until } from '../../helpers/eventually.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { rejects, thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { serverFor } from '../commands/against-gateway.ts';

const test = suite('the link of the bridge');
const serve = serverFor(test);
const ask = { method: 'POST', headers: {}, body: '{}', isRepeatable: false } as const;
const forever = new AbortController().signal;
const none = () => ({ headers: {}, refused: String, name: 'x' });

test('waits for a gateway that is away, and reports it once', async () => {
  const port = await freePort();
  const said: string[] = [];
  const link = new GatewayLink(`http://127.0.0.1:${port}/mcp/x`, none, (text) => said.push(text));
  const answer = link.send({ ...ask, signal: forever });
  await until(() => said.length !== 0);
  await serve((_, response) => void response.end('{}'), port);
  assert.is((await answer).status, 200);
  const away = 'the gateway is unreachable (ECONNREFUSED); waiting for it';
  assert.equal(said, [away, 'the gateway is reachable again']);
});

test('fails when the gateway cannot be reached for the whole wait', async () => {
  const closed = `http://127.0.0.1:${await freePort()}/mcp/x`;
  const redirect = await serve((_, response) => void response.writeHead(302, { location: '/y' }).end());
  for (const [url, why] of [[closed, 'ECONNREFUSED'] as const, [redirect, 'unexpected redirect'] as const]) {
    const request = { ...ask, isRepeatable: true, signal: forever };
    const sent = new GatewayLink(url, none, () => {}, 50).send(request);
    await rejects(sent, Error, `the gateway at ${url} cannot be reached: ${why}`);
  }
});

test('repeats a request that is refused with Retry-After, and no other refusal', async () => {
  let count = 0;
  const url = await serve((_, response) => {
    count += 1;
    if (count === 1) response.writeHead(503, { 'retry-after': '1' });
    else response.writeHead(503);
    response.end('{}');
  });
  const response = await new GatewayLink(url, none, () => {}).send({ ...ask, signal: forever });
  assert.equal([response.status, count], [503, 2]);
});

test('repeats a request that may have been delivered only if it is repeatable', async () => {
  let count = 0;
  const url = await serve((request, response) => {
    count += 1;
    if (count < 3) request.socket.destroy();
    else response.end('{}');
  });
  const link = new GatewayLink(url, none, () => {});
  assert.instance(await thrownBy(link.send({ ...ask, signal: forever })), LostRequest);
  assert.is(count, 1);
  assert.is((await link.send({ ...ask, isRepeatable: true, signal: forever })).status, 200);
});

test('reads the credentials again when they are refused', async () => {
  const seen: unknown[] = [];
  const url = await serve(({ headers }, response) => {
    seen.push(headers.authorization);
    response.writeHead(headers.authorization === 'Bearer new' ? 200 : 401).end('{}');
  });
  let token = 'old';
  const link = new GatewayLink(
    url,
    () => ({ headers: { authorization: `Bearer ${token}` }, refused: String, name: 'x' }),
    () => {},
  );
  assert.is((await link.send({ ...ask, signal: forever })).status, 401);
  token = 'new';
  assert.is((await link.send({ ...ask, signal: forever })).status, 200);
  assert.equal(seen, ['Bearer old', 'Bearer old', 'Bearer new']);
});

test('renews credentials that are refused, once for a request', async () => {
  const seen: unknown[] = [];
  const url = await serve(({ headers }, response) => {
    seen.push(headers.authorization);
    response.writeHead(headers.authorization === 'Bearer 1' ? 200 : 401).end('{}');
  });
  let [token, hasEnded] = [0, false];
  const renew = async (_timeoutMs?: number, areRefused?: boolean): Promise<void> => {
    if (areRefused && hasEnded) throw new CommandFailure('the login has ended');
    if (areRefused) token += 1;
  };
  const credentials = () => ({
    ...{ refused: String, name: 'x', renew },
    get headers() {
      return { authorization: `Bearer ${token}` };
    },
  });
  const link = new GatewayLink(url, credentials, () => {});
  const send = async () => (await link.send({ ...ask, signal: forever })).status;
  assert.equal([await send(), seen], [200, ['Bearer 0', 'Bearer 1']]);
  token = 2;
  assert.equal([await send(), seen.slice(2)], [401, ['Bearer 2', 'Bearer 3']]);
  hasEnded = true;
  assert.equal([await send(), seen.slice(4)], [401, ['Bearer 3']]);
});

test('shares one renewal among requests that are refused, also with one that is refused later', async () => {
  let [token, renewals, refused] = [0, 0, 0];
  const isRenewed = Promise.withResolvers<void>();
  const url = await serve(({ headers }, response) => {
    if (headers.authorization === 'Bearer 1') response.end('{}');
    else {
      refused += 1;
      const refuse = () => void response.writeHead(401).end('{}');
      if (refused === 3) void isRenewed.promise.then(refuse);
      else if (refused < 3) void until(() => refused === 3).then(refuse);
      else refuse();
    }
  });
  const credentials = () => {
    let own = token;
    const renew = async (_timeoutMs?: number, areRefused?: boolean): Promise<void> => {
      if (!areRefused) return;
      renewals += 1;
      await nextTurn();
      own = token = renewals;
    };
    return {
      ...{ refused: String, name: 'x', renew },
      get headers() {
        return { authorization: `Bearer ${own}` };
      },
    };
  };
  const link = new GatewayLink(url, credentials, () => {});
  const sent = [1, 2, 3].map(async () => {
    const { status } = await link.send({ ...ask, signal: forever });
    isRenewed.resolve();
    return status;
  });
  assert.equal(await Promise.all(sent), [200, 200, 200]);
  assert.is(renewals, 1);
});

test('shares one renewal among requests that are refused in the same turn', async () => {
  const ownFetch = globalThis.fetch;
  let [token, renewals] = [0, 0];
  globalThis.fetch = async () => new Response('{}', { status: token === 0 ? 401 : 200 });
  const renew = async (): Promise<void> => {
    renewals += 1;
    await nextTurn();
    token = renewals;
  };
  const credentials = () => ({
    ...{
      refused: String,
      name: 'x',
      renew: async (_ms?: number, areRefused?: boolean) => (areRefused ? renew() : undefined),
    },
    get headers() {
      return { authorization: `Bearer ${token}` };
    },
  });
  try {
    const link = new GatewayLink('http://127.0.0.1:1', credentials, () => {});
    const sent = [1, 2, 3].map(async () => (await link.send({ ...ask, signal: forever })).status);
    assert.equal([await Promise.all(sent), renewals], [[200, 200, 200], 1]);
  } finally {
    globalThis.fetch = ownFetch;
  }
});

test.run();

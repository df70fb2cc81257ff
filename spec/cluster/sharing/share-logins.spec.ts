// Failed logins that nodes count together: what crosses the peer channel, and which answers count. The rule:
// spec/auth/accounts/logins-of-nodes.spec.ts; whole gateways: spec/system/nodes/logins-of-nodes.spec.ts.

import * as assert from 'uvu/assert';
import { LoginThrottle } from '../../../src/auth/accounts/login-throttle.ts';
import type { Peer } from '../../../src/cluster/channel/peer-client.ts';
import { peerQuestions } from '../../../src/cluster/sharing/peer-questions.ts';
import { shareLogins } from '../../../src/cluster/sharing/share-logins.ts';
import type { ForwardedRequest } from '../../../src/domain/nodes/forwarding.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { codeOf } from '../../auth/auth-harness.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('shared failed logins');

const attempt = { username: 'Ada Lovelace', address: '10.20.30.40' };
const window = { count: 10, endsInMs: 30_000 };

/** The code of an attempt at a node, where another one gives this answer; and what was asked. */
async function attemptWith(body: string) {
  const asked: ForwardedRequest[] = [];
  const peer: Pick<Peer, 'forward'> = {
    forward: (request, receiver) => {
      asked.push(request);
      receiver.head(200, {});
      receiver.data(Buffer.from(body));
      receiver.end();
      return { cancel: () => {}, isSent: true, resume: () => {} };
    },
  };
  const throttle = new LoginThrottle(() => 0);
  const node = (life: string) => {
    const since = '2026-11-26T00:00:00.000Z';
    const idle = { programs: 0, calls: 0, isDraining: false };
    return { id: life, life, address: undefined, version: '1', since, ...idle, state: 'live' as const };
  };
  const [path, answer] = shareLogins(
    throttle,
    peerQuestions({
      clock: systemClock,
      peers: { ofLife: () => peer as Peer },
      nodes: () => [node('A'), node('B')],
    }),
  );
  const code = await codeOf(() => throttle.admit(attempt));
  const [request] = asked;
  assert.ok(request);
  return { code, path, answer, request, asked };
}

test('a question names neither the user nor the address, and nothing of them in its URL', async () => {
  const { request, path, answer, asked } = await attemptWith('{}');
  assert.is(request.target, path);
  const { principal } = request.caller;
  const text = JSON.stringify(request).toLowerCase();
  for (const word of ['lovelace', '10.20']) assert.not(text.includes(word), word);
  assert.match(principal.id, /^[\w-]{43}\.[\w-]{43}$/);
  // The other node compares the same hashes, and asks nobody.
  const counts = Object(await answer(principal.id, new URLSearchParams()));
  assert.equal([counts.pair.count, counts.network.count, counts.hasFailed], [1, 1, false]);
  assert.is(asked.length, 1);
});

test('an answer of another node counts', async () => {
  const empty = { count: 0, endsInMs: 60_000 };
  for (const [answer, code] of [
    [{ pair: window, network: window, hasFailed: true }, 'TOO_MANY_ATTEMPTS'],
    [{ pair: empty, network: { count: 60, endsInMs: 1 }, hasFailed: true }, 'TOO_MANY_ATTEMPTS'],
    [{ pair: empty, network: { count: 60, endsInMs: 1 }, hasFailed: false }, 'none'],
    [{ pair: empty, network: empty, hasFailed: false }, 'none'],
  ] as const)
    assert.is((await attemptWith(JSON.stringify(answer))).code, code, JSON.stringify(answer));
});

test('an answer of another form counts as none', async () => {
  for (const body of [
    '',
    'null',
    '{"pair":{"count":10,"endsInMs":1}}',
    '{"pair":{"count":"10","endsInMs":1},"network":{"count":1,"endsInMs":1},"hasFailed":true}',
    '{"pair":{"count":-10,"endsInMs":1},"network":{"count":99,"endsInMs":1},"hasFailed":true}',
    `{"pair":{"count":10,"endsInMs":1},"network":{"count":1,"endsInMs":1},"hasFailed":true,"more":"${'x'.repeat(64 * 1024)}"}`,
  ])
    assert.is((await attemptWith(body)).code, 'none', body.slice(0, 80));
});

test.run();

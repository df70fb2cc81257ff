// What a session needs at an instance, by the era and the transport of the instance, the template and the client.

import * as assert from 'uvu/assert';
import type { ClientProfile } from '../../../src/domain/client.ts';
import { backendUnavailable } from '../../../src/domain/error-catalogue.ts';
import type { InstanceDefinition } from '../../../src/domain/instance.ts';
import type { Peer } from '../../../src/domain/mcp.ts';
import type { SessionSharing } from '../../../src/domain/policy.ts';
import { suite } from '../../helpers/suite.ts';
import {
  ASKABLE,
  FULL,
  HTTP,
  MODERN,
  PLAIN,
  SessionHarness,
  settled,
  simulateTime,
} from './client-session-harness.ts';

const test = suite('client session: binding');
let harness = new SessionHarness();
simulateTime(test, () => harness.close());

const PIPE = { transport: 'stdio', command: 'serve' } as const;
const SSE = { ...HTTP, transport: 'sse' } as const;
const BARE = { ...FULL, era: 'bare', protocolVersion: '' } as const;

/** What a backend of both eras says of itself to a legacy client. */
const DUAL = { ...MODERN, own: { ...FULL, era: 'legacy' } } as const;

type Row = readonly [
  SessionSharing,
  ClientProfile,
  Partial<Peer> & { readonly own?: Partial<Peer> },
  Partial<InstanceDefinition>,
  boolean,
];

const ROWS: readonly Row[] = [
  ['auto', PLAIN, FULL, PIPE, false],
  ['auto', ASKABLE, FULL, PIPE, true],
  ['shared', ASKABLE, FULL, PIPE, false],
  ['isolated', PLAIN, FULL, PIPE, true],
  ['auto', PLAIN, FULL, HTTP, true],
  ['shared', PLAIN, FULL, HTTP, true],
  ['auto', PLAIN, FULL, SSE, true],
  ['isolated', ASKABLE, MODERN, HTTP, false],
  ['shared', PLAIN, DUAL, HTTP, true],
  ['auto', ASKABLE, DUAL, HTTP, true],
  ['auto', ASKABLE, MODERN, PIPE, false],
  ['auto', ASKABLE, DUAL, PIPE, true],
  ['auto', PLAIN, DUAL, PIPE, false],
  ['shared', ASKABLE, DUAL, PIPE, false],
  ['shared', ASKABLE, MODERN, PIPE, false],
  ['isolated', PLAIN, MODERN, PIPE, true],
  ['isolated', PLAIN, DUAL, PIPE, true],
  ['isolated', ASKABLE, BARE, PIPE, false],
  ['isolated', ASKABLE, BARE, HTTP, false],
];

for (const [session, client, { own, ...peer }, fields, isOwn] of ROWS) {
  const who = client === ASKABLE ? 'a client that can be asked' : 'a client that cannot be asked';
  const where = `${own === undefined ? (peer.era ?? 'legacy') : 'both eras'}, ${fields.transport}`;
  test(`${session}: ${who} has ${isOwn ? 'a conversation of its own' : 'a part'} (${where})`, async () => {
    harness = new SessionHarness({ policy: { session } });
    await harness.add('a', { peer, fields, ...(own === undefined ? {} : { own }) });
    const opened = await harness.open(client);
    assert.is(opened.isShared, !isOwn);
    assert.is(opened.peer.era, isOwn ? ((own ?? peer).era ?? 'legacy') : (peer.era ?? 'legacy'));
    assert.is(harness.upstreams('a').filter(({ isClosed }) => !isClosed).length, isOwn ? 1 : 0);
  });
}

test('one of many sessions finds out whether a program speaks the legacy era, too', async () => {
  const own = { processes: 4, share: 1 };
  for (const [peer, isOwn] of [
    [MODERN, false],
    [{ ...FULL, era: 'legacy' } as const, true],
  ] as const) {
    harness = new SessionHarness({ own });
    await harness.add('a', { peer: MODERN, fields: PIPE, own: peer });
    const first = await Promise.all(Array.from({ length: 4 }, (_, n) => harness.open(ASKABLE, `owner ${n}`)));
    assert.equal(
      first.map(({ isShared }) => isShared),
      Array.from({ length: 4 }, () => !isOwn),
    );
    assert.is(harness.upstreams('a').length, isOwn ? 4 : 1);
    if (isOwn) break;
    await Promise.all(Array.from({ length: 8 }, () => harness.open(ASKABLE)));
    assert.is(harness.upstreams('a').length, 1, 'it is known');
    await harness.close();
  }
});

test('another session finds out when the first one left, or had no room', async () => {
  harness = new SessionHarness();
  await harness.add('a', { peer: MODERN, fields: PIPE, own: { ...FULL, era: 'legacy' } });
  const transport = harness.transport('a');
  const open = transport.openUpstream.bind(transport);
  const held = Promise.withResolvers<undefined>();
  transport.openUpstream = (_, signal) => {
    transport.openUpstream = open;
    signal.addEventListener('abort', () => held.reject(signal.reason));
    return held.promise;
  };
  const { binder } = harness.sessions;
  const wish = { template: 't', ownerId: 'ann', profile: ASKABLE, asksForLog: false };
  const leaving = new AbortController();
  const left = binder.settle(wish, { signal: leaving.signal }).catch(() => 'left');
  const later = binder.settle(wish, { signal: new AbortController().signal });
  await settled();
  leaving.abort(new Error('it left'));
  assert.is(await left, 'left');
  const binding = await later;
  assert.is(binding.peer.era, 'legacy');
  await binding.close();
});

test('asks a backend that keeps no conversations once, and again when it was restarted', async () => {
  harness = new SessionHarness();
  await harness.add('a', { peer: MODERN, fields: HTTP });
  for (let n = 0; n < 3; n += 1) {
    const session = await harness.open();
    assert.equal([session.isShared, session.peer.era], [true, 'modern']);
  }
  assert.is(harness.transport('a').profiles.length, 1);
  harness.ref('a').restart();
  await settled();
  await settled();
  assert.is(harness.transports.get('a')?.length, 2);
  await harness.open();
  assert.is(harness.transport('a').profiles.length, 1);
});

test('goes elsewhere when a backend became another while it was asked', async () => {
  harness = new SessionHarness({ policy: { maxRetries: 0 } });
  await harness.add('a', { peer: MODERN, fields: HTTP });
  const asked = harness.transport('a');
  asked.openUpstream = async () => {
    asked.lose();
    await settled();
    return undefined;
  };
  const failure: unknown = await harness.open().catch((thrown: unknown) => thrown);
  assert.match(failure instanceof Error ? failure.message : '', 'it is not connected');
});

test('closes a conversation that breaks while it is told what it has to know', async () => {
  harness = new SessionHarness();
  await harness.add('a', { peer: FULL, fields: HTTP });
  const { binder } = harness.sessions;
  const { signal } = new AbortController();
  const wish = {
    template: 't',
    ownerId: 'ann',
    profile: PLAIN,
    asksForLog: false,
    introduce: () => Promise.reject(backendUnavailable('it broke', { delivered: 'unknown' })),
  };
  const failure: unknown = await binder.settle(wish, { signal }).catch((thrown: unknown) => thrown);
  assert.match(failure instanceof Error ? failure.message : '', 'it broke');
  assert.is(harness.upstreams('a')[0]?.isClosed, true);
});

test('goes back to where it was only when nobody else is there', async () => {
  harness = new SessionHarness();
  for (const id of ['a', 'b']) await harness.add(id);
  const { binder } = harness.sessions;
  const wish = { template: 't', ownerId: 'ann', profile: PLAIN, asksForLog: false };
  const { signal } = new AbortController();
  for (let n = 0; n < 4; n += 1) {
    const binding = await binder.settle(wish, { last: harness.ref('a'), signal });
    assert.is(binding.ref.id, 'b');
    binding.retire();
  }
  harness.ref('b').drain();
  await settled();
  const binding = await binder.settle(wish, { last: harness.ref('a'), signal });
  assert.is(binding.ref.id, 'a');
  binding.retire();
});

test.run();

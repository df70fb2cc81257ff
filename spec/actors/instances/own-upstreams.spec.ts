// What is told of the conversations of single clients, and what one owner may have of them.

import { setImmediate as settled } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { OwnUpstreams } from '../../../src/actors/instances/dedicated-upstreams.ts';
import { ANONYMOUS } from '../../../src/domain/account.ts';
import { backendUnavailable } from '../../../src/domain/backend-errors.ts';
import type { GatewayEvent } from '../../../src/domain/events.ts';
import type { TransportKind } from '../../../src/domain/instance.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Upstream } from '../../../src/transports/transport.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('own upstreams');

const FACT = { template: 't', instanceId: 'i', serverId: 's', principal: 'user:1' };

function host(transport: TransportKind = 'stdio') {
  const own = new OwnUpstreams({ template: 't', id: 'i', serverId: 's', transport });
  const facts: Omit<GatewayEvent, 'atMs'>[] = [];
  own.facts$.subscribe(({ atMs, ...fact }) => {
    assert.ok(Math.abs(Date.now() - atMs) < 5_000);
    facts.push(fact);
  });
  const open = (opened: Promise<Upstream | undefined>, signal = new AbortController().signal) =>
    own.open({ ownerId: 'user:1', signal, open: () => opened });
  return { own, facts, open };
}

test('tells that one was opened, and how it ended, once', async () => {
  const { facts, open } = host();
  const [died, closed] = [new ScriptedTransport(), new ScriptedTransport()];
  await open(Promise.resolve(died));
  await open(Promise.resolve(closed));
  const opened = { type: 'upstream.opened', ...FACT, transport: 'stdio' };
  assert.equal(facts.splice(0), [opened, opened]);
  died.lose();
  await died.close();
  await closed.close();
  const ended = { type: 'upstream.ended', ...FACT, transport: 'stdio' };
  assert.equal(facts, [
    { ...ended, reason: 'exited with code 7', isLost: true },
    { ...ended, reason: 'closed by the gateway', isLost: false },
  ]);
});

test('tells which process it is, where it is one', async () => {
  const { facts, open } = host();
  const upstream = Object.assign(new ScriptedTransport(), { pid: 7 });
  await open(Promise.resolve(upstream));
  upstream.lose();
  assert.equal(
    facts.map((fact) => [fact.type, 'pid' in fact && fact.pid]),
    [
      ['upstream.opened', 7],
      ['upstream.ended', 7],
    ],
  );
});

test('tells that one is over that was so before anybody could hear of it', async () => {
  const { facts, open } = host('http');
  const upstream = new ScriptedTransport();
  upstream.lose('forgotten');
  await open(Promise.resolve(upstream));
  assert.equal(
    facts.map(({ type }) => type),
    ['upstream.opened', 'upstream.ended'],
  );
});

test('tells an end that is told badly', async () => {
  for (const error of [undefined, new Error('broken')]) {
    const { facts, open } = host();
    const upstream = new ScriptedTransport();
    await open(Promise.resolve(upstream));
    upstream.breakClosed(error);
    const reason = 'it did not say why';
    assert.equal(facts.at(-1), {
      ...{ type: 'upstream.ended', ...FACT, transport: 'stdio' },
      ...{ reason, isLost: true },
    });
  }
});

test('tells nothing where the backend keeps none for a single client', async () => {
  const { facts, open } = host('http');
  assert.is(await open(Promise.resolve(undefined)), undefined);
  assert.equal(facts, []);
});

test('tells why one could not be opened, unless nobody waited for it any more', async () => {
  const { facts, open } = host();
  const failure = () => Promise.reject(backendUnavailable('exited with code 1', { delivered: 'no' }));
  assert.is(await codeOf(open(failure(), AbortSignal.abort())), 'BACKEND_UNAVAILABLE');
  assert.equal(facts, []);
  assert.is(await codeOf(open(failure())), 'BACKEND_UNAVAILABLE');
  const [fact] = facts;
  assert.is(fact?.type, 'upstream.failed');
  const { code, reason } = Object(fact);
  assert.is(code, 'BACKEND_UNAVAILABLE');
  assert.match(reason, 'exited with code 1');
});

test('gives one owner a share of the processes, and takes it back whatever becomes of them', async () => {
  const { open } = host();
  const share = Math.max(1, Math.floor(LIMITS.isolatedProcesses * LIMITS.ownerShare));
  const processes = Array.from({ length: share }, () => new ScriptedTransport());
  for (const process of processes) await open(Promise.resolve(process));
  const oneMore = () => codeOf(open(Promise.resolve(undefined)));
  assert.is(await oneMore(), 'QUEUE_FULL');
  processes[0]?.lose();
  await settled();
  assert.is.not(await oneMore(), 'QUEUE_FULL');
  await codeOf(open(Promise.reject(backendUnavailable('no', { delivered: 'no' }))));
  assert.is.not(await oneMore(), 'QUEUE_FULL');
  await open(Promise.resolve(new ScriptedTransport()));
  assert.is(await oneMore(), 'QUEUE_FULL');
});

test('names the setting that bounds the owner: where the share is all there is, that is not the share', async () => {
  for (const [processes, setting] of [
    [1, 'sessions.max_processes'],
    [64, 'sessions.share'],
  ] as const) {
    const at = { template: 't', id: 'i', serverId: 's', transport: 'stdio' } as const;
    const own = new OwnUpstreams(at, { processes, share: 0.25 });
    const { signal } = new AbortController();
    const open = () =>
      own.open({ ownerId: 'user:1', signal, open: () => Promise.resolve(new ScriptedTransport()) });
    for (let count = Math.ceil(processes / 4); count > 0; count -= 1) await open();
    const refusal = await open().catch((thrown: unknown) => thrown);
    assert.match(String(refusal), `(setting ${setting})`);
  }
});

test('counts a process until nothing is left of it, whatever ended it', async () => {
  const { open, facts } = host();
  const share = Math.max(1, Math.floor(LIMITS.isolatedProcesses * LIMITS.ownerShare));
  const processes = Array.from({ length: share }, () => new ScriptedTransport());
  for (const process of processes) await open(Promise.resolve(process));
  const [stubborn, dead, broken] = processes;
  assert.ok(stubborn && dead && broken);
  for (const process of [stubborn, dead]) process.closesSlowly = true;
  const oneMore = () => codeOf(open(Promise.resolve(undefined)));
  void stubborn.close();
  dead.lose();
  await settled();
  assert.equal(facts.at(-1)?.type, 'upstream.ended', 'which is told at once');
  assert.is(await oneMore(), 'QUEUE_FULL');
  for (const process of [stubborn, dead]) {
    process.finishClosing();
    await settled();
    assert.is.not(await oneMore(), 'QUEUE_FULL');
    await open(Promise.resolve(new ScriptedTransport()));
    assert.is(await oneMore(), 'QUEUE_FULL');
  }
  broken.thrownByClose = new Error('broken');
  broken.lose();
  await settled();
  assert.is.not(await oneMore(), 'QUEUE_FULL', 'nobody could do more about one that breaks its promise');
});

test('closes none over HTTP: what has ended there leaves nothing behind', async () => {
  const { open } = host('http');
  const upstream = new ScriptedTransport();
  await open(Promise.resolve(upstream));
  upstream.lose();
  await settled();
  assert.is(upstream.closings, 0);
});

test('gives everything to who cannot be told apart, and over HTTP to everybody', async () => {
  const { own } = host();
  const web = host('http');
  for (let count = 0; count < LIMITS.isolatedProcesses; count += 1) {
    const { signal } = new AbortController();
    const open = () => Promise.resolve(new ScriptedTransport());
    await own.open({ ownerId: ANONYMOUS.id, signal, open });
    await web.open(open());
  }
});

test.run();

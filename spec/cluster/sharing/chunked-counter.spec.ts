// The nodes of a deployment share a limit in chunks: whichever nodes get the requests, with lost answers and other homes, the sum of what
// they admit is between 0.85 and 1.15 of the limit.

import * as assert from 'uvu/assert';
import { ChunkedCounter, type LimitPeers } from '../../../src/cluster/sharing/chunked-counter.ts';
import type { Window } from '../../../src/domain/memory/window-counter.ts';
import { rendezvousOrder } from '../../../src/domain/nodes/rendezvous.ts';
import { seeded } from '../../balancing/candidates.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('limits in chunks');
const WINDOW_MS = 3_600_000;

interface Network {
  readonly random: () => number;
  /** Of the answers. */
  lost: number;
  nowMs: number;
  lives: string[];
  readonly nodes: Map<string, ChunkedCounter>;
  asked: number;
}

function network(names: readonly string[], random: () => number): Network {
  const net: Network = { random, lost: 0, nowMs: 0, lives: [...names], nodes: new Map(), asked: 0 };
  for (const name of names) join(net, name);
  return net;
}

function join(net: Network, name: string): void {
  const peers: LimitPeers = {
    lives: () => [name, ...net.lives.filter((life) => life !== name)],
    ask: async (life, request) => {
      net.asked += 1;
      const answer = await net.nodes.get(life)?.answer(request);
      return net.random() < net.lost ? undefined : answer;
    },
    heldByOthers: async (key) =>
      net.lives.flatMap((life) => (life === name ? [] : (net.nodes.get(life)?.heldOf(key) ?? []))),
  };
  net.nodes.set(
    name,
    new ChunkedCounter({ process: name, peers, now: () => net.nowMs, windowMs: WINDOW_MS, keys: 100 }),
  );
}

async function admits(net: Network, name: string, limit: number, count = 1): Promise<boolean> {
  const window = await net.nodes.get(name)?.add('key', count, limit);
  return window !== undefined && window.count <= limit;
}

for (const [title, pick] of [
  ['one node', () => 0],
  ['random nodes', (random: () => number) => Math.floor(random() * 3)],
  ['mostly one node', (random: () => number) => (random() < 0.95 ? 0 : 2)],
] as const)
  test(`with all requests at ${title}, about the limit is admitted`, async () => {
    for (const limit of [20, 100, 1_000, 5_000]) {
      const random = seeded(limit);
      const net = network(['a', 'b', 'c'], random);
      let admitted = 0;
      for (let request = 0; request < limit * 1.5; request += 1) {
        net.nowMs += 100;
        if (await admits(net, net.lives[pick(random)] ?? '', limit)) admitted += 1;
      }
      within(admitted, limit);
    }
  });

test('lost answers cost no more than their chunks', async () => {
  const random = seeded(7);
  const net = network(['a', 'b', 'c'], random);
  net.lost = 0.02;
  let admitted = 0;
  for (let request = 0; request < 2_000; request += 1) {
    net.nowMs += 100;
    if (await admits(net, net.lives[Math.floor(random() * 3)] ?? '', 1_000)) admitted += 1;
  }
  within(admitted, 1_000);
});

test('a new home knows what the others admitted', async () => {
  const random = seeded(11);
  const net = network(['a', 'b', 'c'], random);
  let admitted = 0;
  for (let request = 0; request < 3_000; request += 1) {
    net.nowMs += 100;
    if (request % 100 === 50) {
      net.lives = ['a', 'b', `extra-${request}`];
      join(net, `extra-${request}`);
    }
    if (await admits(net, random() < 0.5 ? 'a' : 'b', 1_000)) admitted += 1;
  }
  within(admitted, 1_000);
});

test('while their home does not answer, each node admits its own share', async () => {
  const net = network(['a', 'b'], () => 0);
  const gone = Array.from({ length: 100 }, (_, number) => `gone-${number}`);
  net.lives.push(gone.find((name) => rendezvousOrder('key', ['a', 'b', name])[0] === name) ?? '');
  for (const name of ['a', 'b']) {
    let admitted = 0;
    for (let request = 0; request < 1_000; request += 1) if (await admits(net, name, 1_000)) admitted += 1;
    assert.is(admitted, 333);
  }
});

test('a request that is larger than what is left takes nothing from the other nodes', async () => {
  for (const large of ['a', 'b', 'c']) {
    const net = network(['a', 'b', 'c'], () => 0);
    const others = net.lives.filter((name) => name !== large);
    for (let request = 0; request < 900; request += 1) await admits(net, others[request % 2] ?? '', 1_000);
    for (let tries = 0; tries < 3; tries += 1) {
      net.nowMs += 1_000;
      assert.not(await admits(net, large, 1_000, 150), `at ${large}`);
    }
    let admitted = 900;
    for (let request = 0; request < 200; request += 1) {
      net.nowMs += 100;
      if (await admits(net, others[request % 2] ?? '', 1_000)) admitted += 1;
    }
    assert.ok(admitted >= 950, `${admitted} of 1,000 beside ${large}`);
  }
});

test('requests within a chunk need no promise, and the next one is fetched before', async () => {
  const net = network(['a', 'b'], seeded(3));
  const node = net.nodes.get('a');
  let waited = 0;
  for (let request = 0; request < 900; request += 1) {
    const window: Window | Promise<Window> | undefined = node?.add('key', 1, 1_000);
    if (window instanceof Promise) waited += 1;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  assert.is(waited, 0);
});

test('a lone node admits exactly the limit, and again in the next window', async () => {
  const net = network(['a'], seeded(5));
  for (const _ of [1, 2]) {
    let admitted = 0;
    for (let request = 0; request < 150; request += 1) if (await admits(net, 'a', 100)) admitted += 1;
    assert.is(admitted, 100);
    net.nowMs += WINDOW_MS;
  }
});

test.run();

function within(admitted: number, limit: number): void {
  assert.ok(admitted >= limit * 0.85 && admitted <= limit * 1.15, `${admitted} of ${limit}`);
}

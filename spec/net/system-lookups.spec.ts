// Look-ups by the system, which hold threads: names whose DNS servers are silent must not hold them all.

import type { LookupAddress } from 'node:dns';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { systemClock } from '../../src/domain/time/clock.ts';
import { SystemLookups } from '../../src/net/system-lookups.ts';
import { suite } from '../helpers/suite.ts';
import { startDns } from './dns-server.ts';

const test = suite('look-ups by the system');
const HERE: LookupAddress = { address: '192.0.2.7', family: 4 };

/** A system with two threads; look-ups of `silent` names hold theirs until `end`. `asked`: in order. */
function fakeSystem(silent: RegExp) {
  const asked: string[] = [];
  const held: (() => void)[] = [];
  const waiting: (() => void)[] = [];
  let running = 0;
  let nowMs = 0;
  const lookup = async (hostname: string): Promise<LookupAddress[]> => {
    while (running >= 2) await new Promise<void>((resolve) => waiting.push(resolve));
    running += 1;
    asked.push(hostname);
    try {
      if (system.silent.test(hostname)) {
        await new Promise<void>((resolve) => held.push(resolve));
        throw Object.assign(new Error('no answer'), { code: 'EAI_AGAIN' });
      }
      return [HERE];
    } finally {
      running -= 1;
      waiting.shift()?.();
    }
  };
  const system = {
    silent,
    lookup,
    asked,
    clock: { ...systemClock, now: () => nowMs },
    advance: (byMs: number) => {
      nowMs += byMs;
    },
    /** Ends the oldest that is held. */
    end: () => held.shift()?.(),
  };
  return system;
}

function find({ lookup }: SystemLookups, hostname: string): Promise<string> {
  return new Promise((resolve) =>
    lookup(hostname, { all: true }, (error, found) => resolve(error?.code ?? JSON.stringify(found))),
  );
}

const FOUND = JSON.stringify([HERE]);

test('ten names whose DNS servers are silent hold one thread, and no look-up of names that are answered', async () => {
  const dns = await startDns();
  try {
    const system = fakeSystem(/^slow/);
    const lookups = new SystemLookups({ ...system, servers: dns.servers });
    assert.is(await find(lookups, 'known.test'), FOUND);
    const slow = Array.from({ length: 10 }, (_, index) => find(lookups, `slow-${index}.test`));
    // A name that was not asked for before does not wait for those either: the first of them has no thread yet.
    assert.is(await find(lookups, 'new.test'), FOUND);
    while (!system.asked.some((name) => name.startsWith('slow'))) await delay(20);
    // The addresses before are used meanwhile.
    assert.is(await find(lookups, 'known.test'), FOUND);
    const other = find(lookups, 'other.test');
    await delay(100);
    assert.is(system.asked.filter((name) => name.startsWith('slow')).length, 1);
    system.advance(10_000);
    system.end();
    assert.is(await other, FOUND);
    // The others wait for their turn, but not for ever.
    system.advance(30_000);
    while ((await Promise.race([Promise.all(slow), delay(20, 'open')])) === 'open') system.end();
    assert.equal(new Set(await Promise.all(slow)), new Set(['EAI_AGAIN', 'ETIMEOUT']));
  } finally {
    dns.close();
  }
});

test('names that were answered and are silent together hold one thread, and others keep their addresses', async () => {
  const dns = await startDns();
  try {
    const system = fakeSystem(/^never/);
    const lookups = new SystemLookups({ ...system, servers: dns.servers });
    const names = Array.from({ length: 10 }, (_, index) => `turned-${index}.test`);
    for (const name of [...names, 'known.test']) assert.is(await find(lookups, name), FOUND);
    system.asked.length = 0;
    system.silent = /^turned/;
    dns.silent = /^turned/;
    const turned = names.map((name) => find(lookups, name));
    // The system is not asked again: its other thread is for the other look-ups of the process.
    assert.is(await find(lookups, 'known.test'), FOUND);
    assert.equal(system.asked, ['turned-0.test']);
    assert.equal(new Set(await Promise.all(turned)), new Set([FOUND]));
    system.advance(10_000);
    system.end();
    while (system.asked.length < 2) await delay(20);
    assert.equal(system.asked, ['turned-0.test', 'known.test']);
    // A day later their addresses are too old.
    system.advance(25 * 3_600_000);
    assert.is(await Promise.race([find(lookups, 'turned-1.test'), delay(500, 'waits')]), 'waits');
    for (let round = 0; round < 20; round += 1, system.advance(10_000)) {
      system.end();
      await delay(5);
    }
  } finally {
    dns.close();
  }
});

test('callers that ask for the same name share a look-up', async () => {
  const system = fakeSystem(/^slow/);
  const lookups = new SystemLookups(system);
  const found = [find(lookups, 'backend'), find(lookups, 'backend'), find(lookups, 'backend')];
  assert.equal(await Promise.all(found), [FOUND, FOUND, FOUND]);
  assert.equal(system.asked, ['backend']);
});

test.run();

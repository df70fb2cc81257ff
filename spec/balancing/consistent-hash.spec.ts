// consistent_hash: even spread, bounded loads, and what moves when candidates come and go. The doors: spec/http/consistent-hash.spec.ts.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { STRATEGIES } from '../../src/balancing/strategies.ts';
import type { StrategyOptions } from '../../src/balancing/strategy-types.ts';
import { grantPrincipalId } from '../../src/domain/accounts/principal.ts';
import { type JsonFields, JsonText } from '../../src/domain/json/json.ts';
import { suite } from '../helpers/suite.ts';
import {
  type Candidates,
  candidates,
  choose,
  counted,
  inOrder,
  options,
  picks,
  seeded,
  type TestCandidate,
} from './candidates.ts';

const {
  consistent_hash: { create },
  round_robin: { create: roundRobin },
} = STRATEGIES;
const test = suite('consistent hash');
const created = (given?: Partial<StrategyOptions>) => create<TestCandidate>(options(given));
const sumOf = (all: Candidates) => all.reduce((sum, { activeCalls }) => sum + activeCalls, 0);
const CALLERS = Array.from({ length: 10_000 }, (_, index) => `user:${index}`);

test('the same caller gets the same candidate, whichever strategy object chooses', () => {
  const all = many(20);
  for (const caller of CALLERS.slice(0, 200)) {
    const [first, again] = [created(), created()].map((strategy) => firstOf(all, caller, strategy));
    assert.is(first, again);
  }
});

test('the clients of one user get the candidate of the user', () => {
  const [all, strategy] = [many(20), created()];
  const own = firstOf(all, 'user:ann', strategy);
  for (const grant of ['1', '2', '3']) assert.is(firstOf(all, grantPrincipalId(grant, 'ann'), strategy), own);
});

for (const size of [2, 10, 100, 1_000]) {
  test(`${size} candidates get about equal numbers of callers`, () => {
    const [all, strategy] = [many(size), created()];
    const counts = Object.values(counted(CALLERS.map((caller) => firstOf(all, caller, strategy))));
    const mean = CALLERS.length / size;
    const spread = 5 * Math.sqrt(mean); // five standard deviations of a draw
    assert.is(counts.length, size);
    assert.ok(Math.min(...counts) > mean - spread && Math.max(...counts) < mean + spread, counts.join());
  });
}

test('a candidate that leaves moves only its own callers, and they return with it', () => {
  fc.assert(
    fc.property(anySize, fc.nat(), (size, place) => {
      const all = many(size);
      const gone = all[place % size]?.id ?? '';
      const others = inOrder(all.filter(({ id }) => id !== gone) as [...Candidates]);
      const taken: string[] = [];
      const [ofAll, ofOthers] = [created(), created()];
      for (const caller of CALLERS.slice(0, 500)) {
        const before = firstOf(all, caller, ofAll);
        const after = firstOf(others, caller, ofOthers);
        if (before === gone) taken.push(after);
        else assert.is(after, before);
      }
      // They spread: no single neighbour inherits them.
      if (taken.length > 20 && size > 4) assert.ok(new Set(taken).size > 2);
    }),
    { seed: 7, numRuns: 50 },
  );
});

test('the next candidates of a caller are in a fixed order, which differs from caller to caller', () => {
  const all = many(6);
  const orderOf = (caller: string) => {
    const strategy = created();
    const tried = new Set<string>();
    while (tried.size < 6)
      tried.add(choose(strategy, all, ({ id }) => !tried.has(id), { callerId: caller }).id);
    return [...tried].join();
  };
  assert.is(orderOf('user:1'), orderOf('user:1'));
  assert.ok(new Set(CALLERS.slice(0, 100).map(orderOf)).size > 80);
});

test('no candidate has more than 1.25 times the mean in flight, rounded up, at least 1', () => {
  fc.assert(
    fc.property(anySize, fc.integer({ min: 1, max: 5 }), fc.integer(), (size, callers, seed) => {
      const all = many(size);
      const random = seeded(seed);
      const strategy = created({ activeCalls: () => total });
      let total = 0;
      for (let call = 0; call < 500; call += 1) {
        const caller = `user:${Math.floor(random() * callers)}`;
        const chosen = choose(strategy, all, undefined, { callerId: caller });
        const most = Math.max(1, Math.ceil((1.25 * total) / size));
        chosen.activeCalls += 1;
        total += 1;
        assert.ok(chosen.activeCalls <= most, `${chosen.activeCalls} in flight, at most ${most}`);
        const ending = all[Math.floor(random() * size)];
        if (random() < 0.4 && ending !== undefined && ending.activeCalls > 0) {
          ending.activeCalls -= 1;
          total -= 1;
        }
      }
    }),
    { seed: 7, numRuns: 50 },
  );
});

test('the mean is that of the candidates that may take the call', () => {
  const all = many(4);
  const [one, two, three, four] = all;
  if (two === undefined || three === undefined || four === undefined) throw new Error('there are four');
  [one.activeCalls, two.activeCalls] = [4, 4];
  const strategy = created({ activeCalls: () => sumOf(all) });
  const chosen = Array.from({ length: 4 }, () => {
    const next = choose(strategy, all, (each) => each === one || each === two, { callerId: 'user:1' });
    next.activeCalls += 1;
    return next.id;
  });
  assert.equal(new Set(chosen).size, 2);
});

test('a busy candidate gets its callers back when it has ended enough calls', () => {
  const all = many(3);
  const request = { callerId: 'user:1' };
  const strategy = created({ activeCalls: () => sumOf(all) });
  const first = choose(strategy, all, undefined, request);
  first.activeCalls = 1;
  assert.is.not(choose(strategy, all, undefined, request), first);
  first.activeCalls = 0;
  assert.is(choose(strategy, all, undefined, request), first);
});

test('with hash_on of an argument, its JSON text counts, kept as text or not; without it, calls take turns', () => {
  const all = many(50);
  const strategy = created({ policy: () => ({ hashOn: 'argument:user id' }) });
  const first = (args: JsonFields[string], caller?: string) =>
    choose(strategy, all, undefined, { callerId: caller, params: { name: 'greet', arguments: args } }).id;
  const home = first(JsonText.ofText('{"a":[1],"user id":{"n":1}}'));
  assert.is(first(JsonText.ofText('{ "user\\u0020id" : {"n":1}, "a":2 }'), 'user:2'), home);
  assert.is(first({ 'user id': { n: 1 } }), home);
  const values = ['1', '"1"', '1.0', 'true', 'null', '{"n":2}', '["é"]', '2', '3', '4'];
  const texts = values.map((value) => first(JsonText.ofText(`{"user id":${value}}`)));
  assert.ok(new Set(texts).size > 5);
  assert.is(first({ 'user id': ['é'] }), texts[6]);
  for (const without of [undefined, {}, JsonText.ofText('{}'), JsonText.ofText('{"n":{"user id":1}}')]) {
    const turns = Array.from({ length: 50 }, () => first(without, 'user:1'));
    assert.is(new Set(turns).size, 50);
  }
});

test('large arguments are read once for all choices of a call, and again for another hash_on', () => {
  const all = many(50);
  let hashOn = 'argument:a';
  const strategy = created({ policy: () => ({ hashOn }) });
  const bytes = Buffer.from(`{"a":1,"b":2,"c":"${'x'.repeat(10_000)}"}`);
  const params = { arguments: JsonText.ofBytes(bytes) };
  const first = () => choose(strategy, all, undefined, { params }).id;
  const homes = [first()];
  bytes.write('3', bytes.indexOf('1')); // arguments never change: this shows what is read
  homes.push(first());
  hashOn = 'argument:b';
  homes.push(first());
  hashOn = 'argument:a';
  homes.push(first());
  assert.is(homes[1], homes[0]);
  assert.is(new Set(homes).size, 3);
});

test('anonymous callers take turns as with round robin', () => {
  const all = many(5);
  assert.equal(picks(created(), all, 12), picks(roundRobin(options()), all, 12));
});

test.run();

const anySize = fc.integer({ min: 2, max: 50 });

function many(count: number): Candidates {
  const [first = '', ...others] = Array.from({ length: count }, (_, index) => `instance-${index}`).sort();
  return candidates(first, ...others);
}

/** The candidate of an idle pool for that caller. */
function firstOf(all: Candidates, caller: string, strategy = created()): string {
  return choose(strategy, all, undefined, { callerId: caller }).id;
}

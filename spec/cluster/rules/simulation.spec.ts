// The rules of the cluster in thousands of schedules: lost, late and doubled answers, frozen and killed nodes, partitions. Long runs:
// `npm run simulate`.

import * as assert from 'uvu/assert';
import { againWith, chosenSeed } from '../../helpers/dice.ts';
import { suite } from '../../helpers/suite.ts';
import { simulate } from './simulation.ts';

const schedules = 1_000;
const firstSeed = chosenSeed();
const test = suite('cluster rules, simulated', { timeoutMs: 240_000 });

/** What must have happened somewhere, else the schedules test nothing. */
const HAPPENED = [
  ...[
    'join',
    'heartbeat',
    'read',
    'end',
    'stop',
    'ping',
    'askThird',
    'ask',
    'check',
    'say',
    'lease',
    'renew',
  ],
  ...['killPrograms', 'dropSessions', 'take', 'start', 'stopProgram', 'release', 'claim', 'unsafe call'],
  ...['expired, frees all', 'expired, frees sessions', 'refused, frees sessions', 'refused, frees all'],
  ...['restarted, frees all', 'stopped, frees all', 'served', '404', '503'],
];

test(`the invariants hold in ${schedules} schedules`, () => {
  const happened = new Set<string>();
  for (let seed = firstSeed; seed < firstSeed + schedules; seed += 1) {
    const { failure, counts } = simulate(seed);
    if (failure) {
      const { log } = simulate(seed, { isTraced: true });
      assert.unreachable(`${failure}; ${againWith(seed)}\n${log.slice(-60).join('\n')}`);
    }
    for (const what of Object.keys(counts)) happened.add(what);
  }
  assert.equal(
    HAPPENED.filter((what) => !happened.has(what)),
    [],
  );
});

for (const without of ['reaper', 'fence', 'counter', 'mark'] as const)
  test(`without the ${without} they do not hold`, () => {
    let seed = firstSeed; // the faults that need the part are rare
    while (seed < firstSeed + 10_000 && simulate(seed, { without }).failure === undefined) seed += 1;
    assert.ok(seed < firstSeed + 10_000);
  });

test('the same seed gives the same schedule', () => {
  const [one, other] = [simulate(firstSeed, { isTraced: true }), simulate(firstSeed, { isTraced: true })];
  assert.ok(one.log.length > 0);
  assert.equal(other, one);
});

test.run();

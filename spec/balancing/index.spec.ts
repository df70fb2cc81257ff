import * as assert from 'uvu/assert';
import { STRATEGIES } from '../../src/balancing/strategies.ts';
import { STRATEGY_NAMES } from '../../src/domain/policy.ts';
import { strategyConformance } from '../conformance/strategy.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('table of strategies');

test('lists every name that settings may use, and no other', () => {
  assert.equal(Object.keys(STRATEGIES).sort(), [...STRATEGY_NAMES].sort());
});

test('lists each strategy once', () => {
  assert.is(new Set(Object.values(STRATEGIES)).size, STRATEGY_NAMES.length);
});

test.run();

for (const name of STRATEGY_NAMES) strategyConformance(name, STRATEGIES[name]);

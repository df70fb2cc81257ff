import * as assert from 'uvu/assert';
import { STRATEGY_NAMES, strategyName } from '../../src/domain/policy.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('policy');

test('means weighted round robin by weighted, and every strategy by its own name', () => {
  assert.is(strategyName('weighted'), 'weighted_round_robin');
  assert.equal(STRATEGY_NAMES.map(strategyName), STRATEGY_NAMES);
});

test.run();

import { STRATEGIES } from '../../src/balancing/strategies.ts';
import { STRATEGY_NAMES } from '../../src/domain/policy.ts';
import { strategyConformance } from '../conformance/strategy.ts';

for (const name of STRATEGY_NAMES) strategyConformance(name, STRATEGIES[name]);

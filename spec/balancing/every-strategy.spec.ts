import { STRATEGIES, STRATEGY_NAMES } from '../../src/balancing/strategies.ts';
import { strategyConformance } from '../conformance/strategy.ts';

for (const name of STRATEGY_NAMES) strategyConformance(name, STRATEGIES[name].create);

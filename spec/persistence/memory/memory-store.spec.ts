// The store in memory passes the conformance suites of every store.

import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { suite } from '../../helpers/suite.ts';
import { everyConformance } from '../every-conformance.ts';

const test = suite('memory store');

everyConformance(test, async () => new MemoryStore());

test.run();

// The accounts in memory: what all accounts do. Through the store, because that is how anybody reaches them.

import { MemoryStore } from '../../src/persistence/memory-store.ts';
import { accountConformance } from '../conformance/accounts.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('accounts in memory');
accountConformance(test, async () => new MemoryStore());
test.run();

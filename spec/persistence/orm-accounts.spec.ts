// Accounts on a database, here SQLite in memory. The servers run the same: orm-store.*.spec.ts.

import { openStore } from '../../src/persistence/open.ts';
import { accountConformance } from '../conformance/accounts.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('accounts on SQLite');
accountConformance(test, () => openStore('sqlite://', { cwd: '/', migrations: 'apply' }));
test.run();

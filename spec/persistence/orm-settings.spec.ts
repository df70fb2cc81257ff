// Settings on a database, here SQLite in memory. The servers run the same: orm-store.*.spec.ts.

import { openStore } from '../../src/persistence/open.ts';
import { settingConformance } from '../conformance/settings.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('settings on SQLite');
settingConformance(test, () => openStore('sqlite://', { cwd: '/', migrations: 'apply' }));
test.run();

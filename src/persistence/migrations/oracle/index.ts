// Written by mikro-orm.config.ts: the migrations in their order.

import type { MigrationEntry } from '../entry.ts';

export const migrations: readonly MigrationEntry[] = [
  {
    name: 'Migration20261120085831_first',
    load: async () => (await import('./Migration20261120085831_first.ts')).Migration20261120085831_first,
  },
  {
    name: 'Migration20261121170934_calls',
    load: async () => (await import('./Migration20261121170934_calls.ts')).Migration20261121170934_calls,
  },
  {
    name: 'Migration20261122045954_call_blocks',
    load: async () =>
      (await import('./Migration20261122045954_call_blocks.ts')).Migration20261122045954_call_blocks,
  },
];

// The tables. Domain types are made of their rows in ../account-rows.ts and ../instance-rows.ts; nothing outside of persistence sees an entity.

import type { DatabaseKind } from '../database.ts';
import { apiKeyTable, auditTable, settingTable, userTable } from './account-tables.ts';
import { columnsFor } from './columns.ts';
import { instanceTable, revisionTable, templateTable, tombstoneTable } from './registry-tables.ts';

/** Every table, as one database needs it. */
export type Tables = ReturnType<typeof tablesFor>;

export function tablesFor(kind: DatabaseKind) {
  const columns = columnsFor(kind);
  return {
    templates: templateTable(columns),
    instances: instanceTable(columns),
    tombstones: tombstoneTable(columns),
    users: userTable(columns),
    apiKeys: apiKeyTable(columns),
    settings: settingTable(columns),
    audit: auditTable(columns),
    revision: revisionTable(columns),
  };
}

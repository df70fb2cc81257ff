// The table of databases, in the order in which messages name them.

import type { Database } from '../database.ts';
import { mssql } from './mssql.ts';
import { mysql } from './mysql.ts';
import { oracle } from './oracle.ts';
import { postgresql } from './postgresql.ts';
import { sqlite } from './sqlite.ts';

export const DATABASES: readonly Database[] = [sqlite, postgresql, mysql, mssql, oracle];

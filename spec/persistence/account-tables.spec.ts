// The tables of accounts, settings and the audit log.

import * as assert from 'uvu/assert';
import { suite } from '../helpers/suite.ts';
import { KINDS, offline } from './offline.ts';

const test = suite('account tables');

for (const kind of KINDS)
  test(`${kind}: keys and unique columns`, async () => {
    const { orm, tables } = await offline(kind);
    const keysOf = (table: (typeof tables)[keyof typeof tables]) => {
      const { tableName, primaryKeys, props } = orm.getMetadata().get(table.meta.class);
      const unique = props.filter(({ unique }) => unique).map(({ name }) => name);
      return [tableName, primaryKeys, unique];
    };
    assert.equal([tables.users, tables.apiKeys, tables.settings, tables.audit].map(keysOf), [
      ['users', ['id'], ['usernameKey']],
      ['api_keys', ['id'], []],
      ['settings', ['name'], []],
      ['audit_log', ['id'], []],
    ]);
  });

test.run();

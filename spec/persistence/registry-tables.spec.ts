// The tables of the registry.

import * as assert from 'uvu/assert';
import { suite } from '../helpers/suite.ts';
import { KINDS, offline } from './offline.ts';

const test = suite('registry tables');

for (const kind of KINDS)
  test(`${kind}: keys and unique columns`, async () => {
    const { orm, tables } = await offline(kind);
    const keysOf = (table: (typeof tables)[keyof typeof tables]) => {
      const { tableName, primaryKeys, props } = orm.getMetadata().get(table.meta.class);
      const unique = props.filter(({ unique }) => unique).map(({ name }) => name);
      return [tableName, primaryKeys, unique];
    };
    assert.equal([tables.templates, tables.instances, tables.tombstones, tables.revision].map(keysOf), [
      ['templates', ['name'], []],
      ['instances', ['template', 'id'], ['serverId']],
      ['tombstones', ['template', 'id'], []],
      ['revision', ['name'], []],
    ]);
  });

test.run();

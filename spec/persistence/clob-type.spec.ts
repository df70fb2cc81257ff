// Long texts on their way to Oracle.

import * as assert from 'uvu/assert';
import { suite } from '../helpers/suite.ts';
import { offline } from './offline.ts';

const test = suite('clob type');

test('puts a long text together of literals that Oracle takes, and a short one as it is', async () => {
  const { orm, tables } = await offline('oracle');
  const insert = (value: string) =>
    orm.em.fork().createQueryBuilder(tables.settings).insert({ name: 'n', value }).getFormattedQuery();
  assert.is(
    insert('{"short":true}'),
    `insert into "settings" ("name", "value") values ('n', '{"short":true}')`,
  );
  const long = Array.from({ length: 60_000 }, (_, index) => 'abc?:x'[index % 6]).join('');
  const sql = insert(long);
  const literals = [...sql.matchAll(/to_clob\('([^']*)'\)/g)].map(([, literal = '']) => literal);
  assert.ok(Math.max(...literals.map(({ length }) => length)) <= 4_000);
  assert.is(literals.join(''), long);
  assert.match(sql, /values \('n', to_clob\('[^']*'\)(?: \|\| to_clob\('[^']*'\))+\)$/);
});

test('updates the same way, and reads what it wrote', async () => {
  const { orm, tables } = await offline('oracle');
  const sql = orm.em
    .fork()
    .createQueryBuilder(tables.settings)
    .update({ value: 'y'.repeat(5_000) })
    .where({ name: 'n' })
    .getFormattedQuery();
  assert.is([...sql.matchAll(/to_clob\(/g)].length, 3);
  const value = orm.getMetadata().get(tables.settings).properties.value.customType;
  assert.is(value?.convertToJSValue('y'.repeat(5_000), orm.em.getPlatform()), 'y'.repeat(5_000));
});

test.run();

// Texts in the tables: JSON, and long ones in Oracle. The columns are compared with the migrations: migrations.spec.ts.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import type { AuditEntry } from '../../src/domain/audit.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { fromDocument, TEXT_LENGTH, toDocument } from '../../src/persistence/entities.ts';
import { changeOf, rowOfChange } from '../../src/persistence/orm-audit.ts';
import { suite } from '../helpers/suite.ts';
import { offline } from './offline.ts';

const test = suite('entities');

test('oracle: puts a long text together of literals that the database takes, and a short one as it is', async () => {
  const { orm, tables } = await offline('oracle');
  const insert = (value: string) =>
    orm.em.fork().createQueryBuilder(tables.settings).insert({ name: 'n', value }).getFormattedQuery();
  const short = insert('{"short":true}');
  assert.is(short, `insert into "settings" ("name", "value") values ('n', '{"short":true}')`);
  const long = Array.from({ length: 60_000 }, (_, index) => 'abc?:x'[index % 6]).join('');
  const sql = insert(long);
  const literals = [...sql.matchAll(/to_clob\('([^']*)'\)/g)].map(([, literal = '']) => literal);
  assert.ok(Math.max(...literals.map(({ length }) => length)) <= 4_000);
  assert.is(literals.join(''), long);
  assert.match(sql, /values \('n', to_clob\('[^']*'\)(?: \|\| to_clob\('[^']*'\))+\)$/);
});

test('oracle: updates the same way, and reads what it wrote', async () => {
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

test('escapes what is not ASCII, control characters and quotes', () => {
  assert.is(toDocument("it's 'ü' 😀\n"), '"it\\u0027s \\u0027\\u00fc\\u0027 \\ud83d\\ude00\\n"');
  assert.is(toDocument('\x7f\u2028'), '"\\u007f\\u2028"');
});

test('has printable ASCII without a quote, and comes back, whatever the value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ unit: 'binary' }), (value, text) => {
      const document = toDocument([value, text, { [text]: value }]);
      assert.match(document, /^[\x20-\x26\x28-\x7e]*$/);
      // JSON has no -0.
      assert.equal(fromDocument(document), JSON.parse(JSON.stringify([value, text, { [text]: value }])));
    }),
  );
});

test('an audit entry comes back from a database that keeps empty texts as null, and fits its columns', () => {
  const at = '2026-01-02T03:04:05.678Z';
  const entry: AuditEntry = {
    id: 'e',
    at,
    actor: 'local',
    actorName: '',
    action: 'a',
    subject: '',
    status: 0,
  };
  assert.equal(changeOf({ ...rowOfChange(entry), actorName: null, subject: null }), entry);
  assert.ok(LIMITS.auditTextUnits <= TEXT_LENGTH);
});

test.run();

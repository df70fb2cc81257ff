import Type from 'typebox';
import * as assert from 'uvu/assert';
import { oauthKey, readUndamaged, rowReader } from '../../src/persistence/oauth-rows.ts';
import { StoreOpenError } from '../../src/persistence/store-errors.ts';
import { thrownBy } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('values of rows in the table oauth');

const read = rowReader(Type.Object({ id: Type.String(), secret: Type.Optional(Type.String()) }));
const row = { kind: 'own-client', key: 'a1b2' } as const;

test('a value is read as it was written, with fields that only other releases know', () => {
  assert.equal(read({ ...row, value: '{"id":"x","later":1}' }), { id: 'x', later: 1 });
});

for (const [what, value] of [
  ['is no JSON', '{"id":"hush'],
  ['is no object', '"hush"'],
  ['lacks a field', '{"secret":"hush"}'],
  ['has a field of another type', '{"id":"x","secret":["hush"]}'],
] as const) {
  test(`a value that ${what} is a damaged row, named by table, kind and key, without its text`, async () => {
    const error = await thrownBy(() => read({ ...row, value }));
    assert.ok(error instanceof StoreOpenError);
    assert.is(
      error.message,
      'the row "own-client a1b2" of the table oauth is damaged: correct it, or delete it',
    );
    // The log has the cause, too.
    assert.ok(error.cause instanceof TypeError);
    assert.not.match(String(error.cause.stack), 'hush');
    assert.is(error.cause.cause, undefined);
  });
}

test('the line about a damaged grant has its id, by which an admin ends it', async () => {
  const key = oauthKey('grant', 'g-1');
  const warned: string[] = [];
  const named = { ...row, kind: 'grant', key, value: '{}' } as const;
  const rows = ['g-1', 'g-2', undefined].map((grantId) => ({ ...named, grantId, createdAt: '', version: 1 }));
  readUndamaged(rows, read, (line) => warned.push(line));
  assert.equal(
    warned.map((line) => line.replace(key, 'KEY').replace(/ of the table .*/, '')),
    ['the row "grant KEY, id g-1"', 'the row "grant KEY"', 'the row "grant KEY"'],
  );
});

test.run();

import * as assert from 'uvu/assert';
import { newKey } from '../../src/auth/api-keys.ts';
import { namedKey } from '../../src/http/middleware/access-log.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the key that somebody came with');

test('is called by its id, whichever header it is in', () => {
  const { key, id } = newKey();
  assert.is(namedKey({ 'x-api-key': key }), id);
  for (const scheme of ['Bearer', 'bearer']) assert.is(namedKey({ authorization: `${scheme} ${key}` }), id);
});

test('is nothing where there is no key, or something else', () => {
  const { key } = newKey();
  assert.is(namedKey({}), undefined);
  for (const text of ['', 'foo', `${key}x`, key.slice(1), key.toUpperCase(), 'x'.repeat(100_000)]) {
    assert.is(namedKey({ 'x-api-key': text }), undefined);
    assert.is(namedKey({ authorization: `Bearer ${text}` }), undefined);
  }
  assert.is(namedKey({ authorization: 'Basic Zm9vOmJhcg==' }), undefined);
});

test.run();

import * as assert from 'uvu/assert';
import { withoutMeta } from '../../src/domain/mcp.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('meta');

test('loses the keys that the other side must not hear, and keeps the rest', () => {
  const params = { uri: 'a:b', _meta: { mine: 1, theirs: 2 } };
  assert.equal(withoutMeta(params, ['mine', 'absent']), { uri: 'a:b', _meta: { theirs: 2 } });
  assert.equal(params._meta, { mine: 1, theirs: 2 });
});

test('is left out when nothing is left in it', () => {
  assert.equal(withoutMeta({ uri: 'a:b', _meta: { mine: 1 } }, ['mine']), { uri: 'a:b' });
});

test('stays as it is when it is no object', () => {
  for (const params of [{}, { _meta: 'mine' }, { _meta: null }])
    assert.is(withoutMeta(params, ['mine']), params);
});

test.run();

// The bounded LRU map.

import * as assert from 'uvu/assert';
import { LruMap } from '../../../src/domain/memory/lru-map.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('LRU map');

test('evicts the least recently used entry; reading and writing are uses', () => {
  const map = new LruMap<string>(3);
  for (const key of ['a', 'b', 'c']) map.set(key, key);
  map.get('a');
  map.set('b', 'x');
  map.set('d', 'd');
  assert.equal([[...map.values()], map.get('c'), map.size], [['d', 'x', 'a'], undefined, 3]);
  map.delete('a');
  assert.equal([...map.values()], ['d', 'x']);
});

test.run();

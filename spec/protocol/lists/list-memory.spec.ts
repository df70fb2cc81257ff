import * as assert from 'uvu/assert';
import { ListMemory, StoredLists } from '../../../src/protocol/lists/list-cache.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('list memory');

const KIB = 1024;

/** Room for four lists of one KiB, in two caches. */
function setUp(most = 10) {
  const memory = new ListMemory(8 * KIB);
  return { memory, a: new StoredLists<string>(most, memory), b: new StoredLists<string>(most, memory) };
}

test('lists of all caches share the room, and the one used least recently goes', () => {
  const { memory, a, b } = setUp();
  for (const key of ['1', '2']) {
    a.set(key, `a${key}`, KIB);
    b.set(key, `b${key}`, KIB);
  }
  assert.is(memory.bytes, 8 * KIB);
  a.get('1');
  b.set('3', 'b3', KIB);
  assert.equal([...a.values()], ['a2', 'a1']);
  assert.equal([...b.values()], ['b2', 'b3']);
  assert.is(b.get('1'), undefined);
  assert.is(memory.bytes, 8 * KIB);
});

test('a list that is larger than all the room is not kept', () => {
  const { memory, a } = setUp();
  a.set('1', 'small', KIB);
  a.set('2', 'large', 8 * KIB);
  assert.equal([a.get('1'), a.get('2')], ['small', undefined]);
  a.set('1', 'large', 8 * KIB);
  assert.equal([a.get('1'), memory.bytes], [undefined, 0]);
});

test('gives room back for what is replaced, removed, or one too many', () => {
  const { memory, a } = setUp(2);
  a.set('1', 'x', KIB);
  a.set('1', 'y', 0);
  assert.equal([a.get('1'), memory.bytes], ['y', KIB]);
  a.set('2', 'x', 0);
  a.set('3', 'x', 0);
  assert.equal([a.get('1'), memory.bytes], [undefined, 2 * KIB]);
  a.delete('2');
  a.delete('3');
  a.delete('4');
  assert.is(memory.bytes, 0);
});

test('forgets the lists of one cache, and gives their room back', () => {
  const { memory, a, b } = setUp();
  for (const key of ['1', '2']) a.set(key, key, 0);
  b.set('1', 'other', 0);
  a.clear();
  assert.equal([[...a.values()], [...b.values()], memory.bytes], [[], ['other'], KIB]);
});

test.run();

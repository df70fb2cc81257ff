// Lives of a node and ids of sessions.

import * as assert from 'uvu/assert';
import { lifeOf, newLife, newSessionId } from '../../../src/domain/nodes/life.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('life');

test('a session id is its life and 43 random characters', () => {
  const lives = Array.from({ length: 100 }, newLife);
  assert.is(new Set(lives).size, 100);
  for (const life of lives) {
    assert.match(life, /^[A-Za-z0-9_-]{8}$/);
    const ids = [newSessionId(life), newSessionId(life)];
    assert.is(new Set(ids).size, 2);
    for (const id of ids) {
      assert.match(id, /^[A-Za-z0-9_-]{51}$/);
      assert.is(lifeOf(id), life);
    }
  }
});

test('other text is not a session id', () => {
  const id = newSessionId('12345678');
  for (const text of ['', 'x', id.slice(1), `${id}x`, ` ${id.slice(1)}`, `${id.slice(1)}.`, `${id}\n`])
    assert.is(lifeOf(text), undefined, JSON.stringify(text));
});

test.run();

// What the console shows of a changed definition: each line that is gone or new, once, and nothing for another order of keys.

import * as assert from 'uvu/assert';
import { diffOf } from '../../web/src/diff.ts';
import { readJson } from '../../web/src/json.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the differences of two definitions');

const SIGNS = { same: ' ', gone: '-', new: '+' };
const written = (before: unknown, after: unknown) =>
  diffOf(before, after).map(({ kind, text }) => `${SIGNS[kind]}${text}`);

test('show texts and JSON as lines that are gone, new or the same', () => {
  assert.equal(written('a\nb\nc', 'a\nx\nc\nd'), [' a', '-b', '+x', ' c', '+d']);
  assert.equal(
    written({ b: 1, a: [1] }, { a: [1], b: 1 }).filter((line) => !line.startsWith(' ')),
    [],
  );
  assert.equal(written({ type: 'object' }, { type: 'object', additionalProperties: false }), [
    ' {',
    '+  "additionalProperties": false,',
    '   "type": "object"',
    ' }',
  ]);
  assert.equal(written(undefined, 'new'), ['+new']);
  assert.equal(written('gone', undefined), ['-gone']);
});

test('show each line of large texts', () => {
  const lines = (word: string) => Array.from({ length: 1_500 }, (_, index) => `${word} ${index}`).join('\n');
  const found = written(lines('a'), lines('b'));
  assert.is(found.length, 3_000);
  assert.equal([found[0], found[1_499], found[1_500]], ['-a 0', '-a 1499', '+b 0']);
});

test('shows the last digits of long integers', () => {
  const [before, after] = ['9007199254740992', '9007199254740993'].map((digits) =>
    readJson(`{"most":${digits}}`),
  );
  const lines = diffOf(before, after).map(({ kind, text }) => `${kind} ${text}`);
  assert.equal(lines, [
    'same {',
    'gone   "most": 9007199254740992',
    'new   "most": 9007199254740993',
    'same }',
  ]);
});

test.run();

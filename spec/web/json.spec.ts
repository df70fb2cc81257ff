// How the console reads the JSON of answers: servers may nest values as deep as they like.

import * as assert from 'uvu/assert';
import { exactValue, readJson } from '../../web/src/json.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('JSON of answers in the console');

const nested = (levels: number) => `${'{"a":['.repeat(levels / 2)}${']}'.repeat(levels / 2)}`;

test('is read as it is up to 256 levels', () => {
  const text = `[${nested(254)},{"__proto__":{"b":1},"c":null}]`;
  assert.is(JSON.stringify(readJson(text)), text);
  for (const plain of ['1', '"x"', 'null', '[]']) assert.is(JSON.stringify(readJson(plain)), plain);
});

test('loses what is nested deeper, which no page could show', () => {
  const text = JSON.stringify(readJson(`[1,${nested(100_000)},{"__proto__":${nested(100_000)}}]`));
  assert.match(text, '["…"]');
  assert.is(text.match(/\[/g)?.length, 1 + 127 + 127);
  assert.throws(() => readJson('{'), /JSON/);
});

test('keeps the digits of integers beyond 2^53', () => {
  const text =
    '{"a":[9007199254740993,-12345678901234567890,1e400,0.1234567890123456,9007199254740992],"__proto__":{"b":9007199254740993}}';
  assert.is(JSON.stringify(readJson(text)), text);
  assert.equal(readJson('[9007199254740991,1.5]'), [2 ** 53 - 1, 1.5]);
  assert.is(JSON.stringify(exactValue('-9007199254740993')), '-9007199254740993');
  assert.match(JSON.stringify(readJson(`[${nested(100_000)},1234567890123456789]`)), '…');
});

test.run();

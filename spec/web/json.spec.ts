// How the console reads the JSON of answers: servers may nest values as deep as they like.

import * as assert from 'uvu/assert';
import { readJson } from '../../web/src/json.ts';
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

test.run();

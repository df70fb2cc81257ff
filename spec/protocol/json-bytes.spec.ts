import * as assert from 'uvu/assert';
import { topValue } from '../../src/protocol/modern/modern-over-legacy.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('key in JSON bytes');

const has = (text: string, key = 'k') => topValue(Buffer.from(text), key) !== -1;

test('is found wherever it stands on top', () => {
  for (const text of ['{"k":1}', '{ "k" :1}', '{\n\t"k"\r\n: {"k":2}}', '{"a":[{"k":1},"]"],"k":null}']) {
    assert.is(has(text), true, text);
  }
  assert.is(has(`{"k":1,"a":"${'x'.repeat(10_000)}"}`), true);
  assert.is(has(`{"a":"${'x'.repeat(10_000)}","k":1}`), true);
});

test('is not found inside of other values, nor in strings', () => {
  const texts = [
    '{}',
    '{"a":{"k":1}}',
    '{"a":[{"k":1}],"b":"k"}',
    '{"a":"k","b":["k"]}',
    '{"a":"\\"k\\":1"}',
    '{"a":"\\"k","b":1}',
    '{"a":"\\\\","b":{"k":1}}',
    '{"a":"}","b":{"k":1}}',
    '{"a":{"b":"{{{"},"c":{"k":"]"}}',
    '{"kk":1}',
  ];
  for (const text of texts) {
    JSON.parse(text);
    assert.is(has(text), false, text);
  }
});

test('agrees with a parser, whatever surrounds it', () => {
  const values = ['1', '"k"', '"\\"k\\":"', '{"k":1}', '[{"k":"}"}]', '"\\\\"', '"{["', '{"a":{"k":[]}}'];
  for (const one of values) {
    for (const two of values) {
      for (const middle of ['', '"k":true,']) {
        const text = `{"a":${one},${middle}"b":${two}}`;
        assert.is(has(text), 'k' in JSON.parse(text), text);
      }
    }
  }
});

test('is looked for in linear time, however often it stands somewhere else', () => {
  const inside = '{"k":1},'.repeat(100_000);
  assert.is(has(`{"a":[${inside}0]}`), false);
  assert.is(has(`{"a":[${inside}0],"k":1,"b":[${inside}0]}`), true);
});

test('its value begins behind the colon', () => {
  const texts = [
    '{"k":1}',
    '{"k" :\n 1}',
    `{"a":"${'x'.repeat(500)}","k": 1}`,
    `{"k":1,"a":"${'x'.repeat(500)}"}`,
  ];
  for (const text of texts) assert.is(topValue(Buffer.from(text), 'k'), text.indexOf('1'), text.slice(0, 20));
  assert.is(topValue(Buffer.from('{"a":"k"}'), 'k'), -1);
});

test.run();

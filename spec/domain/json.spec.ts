import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { canonicalText, isJsonObject, JsonText, parseExact } from '../../src/domain/json.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('json');

const text = (json: JsonText) => Buffer.from(json.bytes).toString();

test('takes a plain object for an object, and nothing else', () => {
  const values = [{}, { a: 1 }, [], null, undefined, 'text', 1, true];
  assert.equal(values.map(isJsonObject), [true, true, false, false, false, false, false, false]);
});

test('keeps the bytes and the value it was made of as they are, and makes the other once', () => {
  const bytes = Buffer.from('{ "a" : 1.0 }');
  const value = { a: 'ä€😀' };
  const [ofBytes, ofValue, ofBoth] = [
    JsonText.ofBytes(bytes),
    JsonText.ofValue(value),
    JsonText.ofValue(value, bytes),
  ];
  assert.equal(ofBytes.value, { a: 1 });
  assert.is(ofBytes.value, ofBytes.value);
  assert.is(ofBytes.bytes, bytes);
  assert.is(text(ofValue), '{"a":"ä€😀"}');
  assert.is(ofValue.bytes, ofValue.bytes);
  assert.is(ofValue.value, value);
  assert.equal([ofBoth.bytes === bytes, ofBoth.value === value], [true, true]);
});

test('writes a value that is not there as null, and parses null', () => {
  assert.equal([text(JsonText.ofValue(undefined)), text(JsonText.ofValue(null))], ['null', 'null']);
  assert.is(JsonText.ofBytes(Buffer.from('null')).value, null);
});

test('throws a SyntaxError when bytes that were trusted are asked for their value and are not JSON', () => {
  assert.throws(() => JsonText.ofBytes(Buffer.from('{"a":')).value, SyntaxError);
});

test('writes equal values as equal texts, whatever the order of their keys', () => {
  const found = canonicalText({ roots: { listChanged: true }, sampling: {} });
  assert.is(found, canonicalText({ sampling: {}, roots: { listChanged: true } }));
});

test('writes different ones as different texts', () => {
  const values = [{}, [], null, 'b', '{}', [1, 2], [2, 1], { b: {} }];
  const all = [{}, { 'a:{}': {} }, ...values.map((a) => ({ a }))];
  assert.is(new Set(all.map(canonicalText)).size, all.length);
});

/** Numbers as clients and servers write them, also those that JavaScript cannot hold. */
const NUMBERS = fc.oneof(
  fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom(
    '1e400',
    '-1E+400',
    '1e-400',
    '-0',
    '-0.0',
    '0',
    '9007199254740993',
    '-9007199254740993',
    '2e308',
  ),
);

test('writes every number as it was, when JavaScript would change it', () => {
  fc.assert(
    fc.property(NUMBERS, NUMBERS, (one, other) => {
      const json = `{"a":[${one},{"b":${other}}],"c":"${one}"}`;
      assert.is(JSON.stringify(parseExact(json)), json);
    }),
  );
});

test('takes a number that JavaScript writes otherwise, but as the same, for a number', () => {
  const found = parseExact('[1.0, 1e2, 0.10, 9007199254740991, 0.30000000000000004]');
  assert.equal(found, [1, 100, 0.1, 9007199254740991, 0.30000000000000004]);
});

test('is no object where it stands for a number', () => {
  assert.not(isJsonObject(parseExact('12345678901234567890')));
  const found = JSON.stringify({ a: JsonText.ofBytes(Buffer.from('[12345678901234567890]')) });
  assert.is(found, '{"a":[12345678901234567890]}');
});

test.run();

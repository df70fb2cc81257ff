// JSON as values and as text, and the scanner that reads it in one pass.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import {
  canonicalText,
  isJsonObject,
  type JsonFields,
  JsonText,
  parseExact,
  valuesIn,
  writeFields,
} from '../../../src/domain/json/json.ts';
import { eachField, jsonPieces, LazyFields } from '../../../src/domain/json/json-pieces.ts';
import {
  type Excess,
  hasMoreValues,
  memberBytes,
  NO_INDEX,
  readFields,
  scanned,
  skipValue,
  valuesInBytes,
} from '../../../src/domain/json/json-scanner.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('json');

test('pieces of a value are what JSON.stringify writes, none of them long', () => {
  const check = (value: unknown) => {
    const pieces = [...jsonPieces(value)];
    assert.is(pieces.join(''), JSON.stringify(value));
    return Math.max(...pieces.map(({ length }) => length));
  };
  fc.assert(fc.property(fc.jsonValue(), (value) => void check(value)));
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [n, { a: n }]));
  assert.ok(check({ many, list: Object.values(many), flat: Object.keys(many) }) < 20);
  check({ exact: parseExact('[12345678901234567890,{"a":-0}]'), none: undefined });
  const lazy = new LazyFields(() => eachField({ a: new LazyFields(() => eachField({})), b: [1] }));
  assert.is([...jsonPieces(lazy)].join(''), '{"a":{},"b":[1]}');
});

const text = (json: JsonText) => Buffer.from(json.bytes).toString();

test('accepts only plain objects as JSON objects', () => {
  const values = [{}, { a: 1 }, [], null, undefined, 'text', 1, true];
  assert.equal(values.map(isJsonObject), [true, true, false, false, false, false, false, false]);
});

test('keeps the bytes or the value that a JsonText was made of, and makes the other form once', () => {
  const bytes = Buffer.from('{ "a" : 1.0 }');
  const value = { a: 'ä€😀' };
  const [ofBytes, ofValue] = [JsonText.ofBytes(bytes), JsonText.ofValue(value)];
  assert.equal(ofBytes.value, { a: 1 });
  assert.is(ofBytes.value, ofBytes.value);
  assert.is(ofBytes.bytes, bytes);
  assert.is(text(ofValue), '{"a":"ä€😀"}');
  assert.is(ofValue.bytes, ofValue.bytes);
  assert.is(ofValue.value, value);
});

test('writes undefined as null, and parses null', () => {
  assert.equal([text(JsonText.ofValue(undefined)), text(JsonText.ofValue(null))], ['null', 'null']);
  assert.is(JsonText.ofBytes(Buffer.from('null')).value, null);
});

test('writes equal values as the same canonical text for any order of keys', () => {
  const found = canonicalText({ roots: { listChanged: true }, sampling: {} });
  assert.is(found, canonicalText({ sampling: {}, roots: { listChanged: true } }));
});

test('writes different values as different canonical texts', () => {
  const values = [{}, [], null, 'b', '{}', [1, 2], [2, 1], { b: {} }];
  const all = [{}, { 'a:{}': {} }, ...values.map((a) => ({ a }))];
  assert.is(new Set(all.map(canonicalText)).size, all.length);
});

/** Numbers as clients and servers write them, also those that JavaScript cannot hold. */
const NUMBERS = fc.oneof(
  fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  // Neither part alone has more digits than a double holds.
  fc.tuple(fc.integer({ min: 1 }), fc.nat()).map(([whole, part]) => `-${whole}.${part}1`),
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

test('writes every number exactly as it was parsed, if JavaScript would change it', () => {
  fc.assert(
    fc.property(NUMBERS, NUMBERS, (one, other) => {
      const json = `{"a":[${one},{"b":${other}}],"c":"${one}"}`;
      assert.is(JSON.stringify(parseExact(json)), json);
    }),
  );
});

test('finds such numbers in linear time, whatever the strings look like', () => {
  const digits = '1.'.repeat(500_000);
  assert.equal(parseExact(`["${digits}",1]`), [digits, 1]);
});

test('of repeated keys the last one is exact, however it is written, and a dropped one is not there', () => {
  for (const [text, written] of [
    ['{"a":1e999,"a":5}', '{"a":5}'],
    ['{"a":1e999,"\\u0061":2e999}', '{"a":2e999}'],
    ['{"a":9007199254740993,"a":9007199254740992}', '{"a":9007199254740992}'],
    ['{"a":1E+400,"a":9007199254740993,"a":9007199254740992,"a":1E+400}', '{"a":1E+400}'],
    ['{"a":{"b":1e999},"a":{"c":[[],[1,-0]]}}', '{"a":{"c":[[],[1,-0]]}}'],
    [
      '{"__proto__":[1e-999],"\\\\":"\\"1e999,","x,":[{}, "[{", 1e999]}',
      '{"__proto__":[1e-999],"\\\\":"\\"1e999,","x,":[{},"[{",1e999]}',
    ],
  ] as const)
    assert.is(JSON.stringify(parseExact(text)), written, text);
});

test('parses a number that JavaScript writes differently but equally as a number', () => {
  const found = parseExact('[1.0, 1e2, 0.10, 9007199254740991, 0.30000000000000004]');
  assert.equal(found, [1, 100, 0.1, 9007199254740991, 0.30000000000000004]);
});

test('does not treat the JsonText of a large number as a JSON object', () => {
  assert.not(isJsonObject(parseExact('12345678901234567890')));
  const found = JSON.stringify({ a: JsonText.ofBytes(Buffer.from('[12345678901234567890]')) });
  assert.is(found, '{"a":[12345678901234567890]}');
});

function excessIn(bytes: Buffer, levels: number): Excess | undefined {
  const source = scanned(bytes, { levels, values: LIMITS.bodyValues });
  skipValue(source, 0);
  return source.excess;
}

/** The fields of the object in the text; asserts that reading it as a string or as bytes gives the same. */
function fieldsOf(json: string): JsonFields {
  const bytes = Buffer.from(json);
  const bounds = { levels: 128, values: LIMITS.bodyValues };
  const [short, long] = [json, ''].map((text) => {
    const fields: Record<string, JsonFields[string]> = {};
    assert.is(readFields(scanned(bytes, bounds, text), json.indexOf('{'), fields), bytes.length);
    return fields;
  });
  if (short === undefined || long === undefined) throw new Error('not read');
  assert.is(writeFields(short), writeFields(long));
  return short;
}

/** The number of values in the parsed value; each key counts as one. */
function countOf(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + countOf(item), 1);
  if (!isJsonObject(value)) return 1;
  return Object.values(value).reduce((sum: number, field) => sum + 1 + countOf(field), 1);
}

const OBJECTS = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 });
const SPACES = fc.constantFrom(undefined, 1, '\t', '\r\n ');

test('counts each value and each key once, with any white space between them', () => {
  fc.assert(
    fc.property(OBJECTS, SPACES, (value, space) => {
      const json = JSON.stringify(value, undefined, space);
      const copies = Math.floor((LIMITS.bodyValues - 1) / countOf(value));
      const listed = (times: number) => Buffer.from(`[${Array(times).fill(json)}]`);
      assert.is(excessIn(listed(copies), 9), undefined);
      assert.is(excessIn(listed(copies + 1), 9), 'values');
    }),
    { numRuns: 10 },
  );
});

test('does not count brackets in strings as nesting levels, at any length and with any escapes', () => {
  for (const length of [1, 62, 63, 64, 65, 200]) {
    for (const escapes of ['', '\\\\', '\\"', '\\\\\\"', '\\"\\"\\\\']) {
      const text = `"${'['.repeat(length)}${escapes}${'{'.repeat(length)}${escapes}"`;
      assert.is(excessIn(Buffer.from(`[${text},[${text}]]${' '.repeat(50)}`), 2), undefined, text);
      assert.is(excessIn(Buffer.from(`[${text},[${text}, [0]]]`), 2), 'depth', text);
    }
  }
});

test('reads the fields of an object so that writing them gives an equal object', () => {
  fc.assert(
    fc.property(OBJECTS, SPACES, (value, space) => {
      const json = JSON.stringify(value, undefined, space);
      const parsed: JsonFields = JSON.parse(json);
      const fields = fieldsOf(` ${json}`);
      assert.equal(Object.keys(fields).sort(), Object.keys(parsed).sort());
      assert.equal(JSON.parse(writeFields(fields)), parsed);
    }),
  );
});

test('keeps arrays, objects and unusual numbers as text, also in _meta, and takes the last of repeated fields', () => {
  const json =
    '{"a" : {"x": 1.0,"x":2} ,"b":1,"c":1.0,"d":12345678901234567890,"e":"\\u0041\\"","f":true,"\\u0061":[1e400 ] ,"g":null,"_meta":{"h":{"i":-0},"j":2}}';
  const fields = fieldsOf(json);
  assert.is(
    writeFields(fields),
    '{"a":[1e400 ],"b":1,"c":1.0,"d":12345678901234567890,"e":"A\\"","f":true,"g":null,"_meta":{"h":{"i":-0},"j":2}}',
  );
  assert.instance(fields.a, JsonText);
  assert.is(fields.b, 1);
});

test('bounds the depth of fields, also of _meta in _meta', () => {
  for (const [levels, excess] of [
    [128, undefined],
    [129, 'depth'],
    [100_000, 'depth'],
  ] as const) {
    const json = `${'{"_meta":'.repeat(levels)}1${'}'.repeat(levels)}`;
    const source = scanned(Buffer.from(json), { levels: 128, values: LIMITS.bodyValues });
    readFields(source, 0, {});
    assert.is(source.excess, excess);
  }
});

test('counts the values of fields, also of repeated objects that are read into fields', () => {
  for (const field of ['"_meta":{}', '"params":{}', '"a":{}', '"_meta":{"b":0}']) {
    const each = countOf(JSON.parse(`{${field}}`)) - 1;
    const copies = Math.floor((LIMITS.bodyValues - 1) / each);
    for (const [times, excess] of [
      [copies, undefined],
      [copies + 1, 'values'],
    ] as const) {
      const json = `{${Array(times).fill(field)}}`;
      const source = scanned(Buffer.from(json), { levels: 128, values: LIMITS.bodyValues });
      const end = readFields(source, 0, {}, field.startsWith('"params') ? 'params' : '_meta');
      assert.equal([source.excess, end], [excess, excess === undefined ? json.length : NO_INDEX], field);
    }
  }
});

test('finds out whether JSON has more values than a bound', () => {
  const list = (values: number) => Buffer.from(` [${Array(values - 1).fill('{}')}]`);
  for (const most of [1, 2, 1_000]) {
    assert.equal([hasMoreValues(list(most), most), hasMoreValues(list(most + 1), most)], [false, true]);
  }
  assert.is(hasMoreValues(Buffer.from('[1,1,1,1]'), 5), false);
  assert.is(hasMoreValues(Buffer.from('[1,1,1,1]'), 4), true);
});

test('counts the values in bytes as those of the parsed value', () => {
  for (const json of ['1', ' {} ', '{"a":{"b":[1,"x",null]},"c":[]}', '[[],[{"a":true}],-1.5e3]'])
    assert.is(valuesInBytes(Buffer.from(json), 100), valuesIn(JSON.parse(json), 100), json);
  assert.is(valuesInBytes(Buffer.from('[1,1,1]'), 2), 3);
});

test('keeps no large value next to its bytes', () => {
  const large = JsonText.ofText(JSON.stringify(Array(LIMITS.inspectedResultBytes).fill(1)));
  assert.is.not(large.value, large.value);
});

test('reads a field named __proto__ as an ordinary field', () => {
  const json = '{"__proto__":{"polluted":true}}';
  const fields = fieldsOf(json);
  assert.is(Object.getPrototypeOf(fields), Object.prototype);
  assert.is(writeFields(fields), json);
});

test('finds the bytes of a top-level member as they are written', () => {
  const found = (json: string, key: string) => memberBytes(Buffer.from(json), key)?.toString();
  const json = ' { "a" : {"b":[1, "}"]} ,"b":1.0,"caf\\u00e9":"\\n","b": "two" , "c":-0e5 }';
  assert.equal(
    ['a', 'b', 'café', 'c', 'd', '"a"'].map((key) => found(json, key)),
    ['{"b":[1, "}"]}', '"two"', '"\\n"', '-0e5', undefined, undefined],
  );
  assert.equal(
    ['[{"a":1}]', '"a"', '{}', 'null'].map((other) => found(other, 'a')),
    [undefined, undefined, undefined, undefined],
  );
});

test.run();

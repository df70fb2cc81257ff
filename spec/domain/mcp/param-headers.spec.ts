// The headers that the input schema of a tool declares with x-mcp-header, and their values.

import * as assert from 'uvu/assert';
import { type JsonFields, type JsonObject, JsonText, parseExact } from '../../../src/domain/json/json.ts';
import { DeclaredArguments, declaredBy, headerBytes } from '../../../src/domain/mcp/param-headers.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('declared headers');
const declared = { type: 'string', 'x-mcp-header': 'A' };

function schemaWith(properties: JsonObject, more: JsonObject = {}): JsonObject {
  return { type: 'object', properties, ...more };
}

const schema = schemaWith({
  region: { type: 'string', 'x-mcp-header': 'Region' },
  size: { type: 'integer', 'x-mcp-header': 'size' },
  dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
  other: { type: 'string' },
  deep: { type: 'object', properties: { er: { type: 'string', 'x-mcp-header': 'Deep-Er' } } },
});

function headersOf(inputSchema: unknown, args: JsonFields[string]) {
  return new DeclaredArguments(declaredBy(inputSchema).declarations).headersFor(args);
}

test('are sent for the arguments that declare one', () => {
  const args = { region: 'grüße', size: 42, dry: false, other: 'x', deep: { er: ' y' } };
  assert.equal(headersOf(schema, args), {
    'mcp-param-region': '=?base64?Z3LDvMOfZQ==?=',
    'mcp-param-size': '42',
    'mcp-param-dry': 'false',
    'mcp-param-deep-er': '=?base64?IHk=?=',
  });
  assert.is(declaredBy(schema).fault, undefined);
});

test('are read from the arguments in one pass, however many a tool declares', () => {
  const many = Array.from({ length: 20_000 }, (_, index) => index);
  const one = (index: number) => [`p${index}`, { type: 'string', 'x-mcp-header': `h${index}` }];
  const properties = Object.fromEntries(many.map(one)); // to read the arguments once for each would take minutes
  const args = JSON.stringify({ list: Array.from({ length: 500_000 }, () => 1), p7: 'seven' });
  const found = headersOf(schemaWith(properties), JsonText.ofText(args));
  assert.equal(found, { 'mcp-param-h7': 'seven' });
});

test('are read from text as a parser reads it: the last of repeated keys, and keys with escapes', () => {
  const texts = [
    '{"deep":{"er":"no"},"region":"a","region":"b","de\\u0065p":{"er":"x","er":"y"}}',
    '{"deep":{"er":"no"},"region":"b","deep":7}',
    '{"region":["a"],"deep":{"er":{"er":"no"}},"dry":null}',
    '["region"]',
  ];
  const found = texts.map((text) => headersOf(schema, JsonText.ofText(text)));
  const region = { 'mcp-param-region': 'b' };
  assert.equal(found, [{ ...region, 'mcp-param-deep-er': 'y' }, region, undefined, undefined]);
  assert.equal(
    found,
    texts.map((text) => headersOf(schema, JSON.parse(text))),
  );
});

test('make a tool invalid if they violate a rule, with the place and the rule in the fault', () => {
  const nowhere = (at: string) => `a header is declared at ${at}, which is not a single argument`;
  const nameless = 'the header for "a" has an invalid name';
  const mistyped = 'a header is declared for "a", which is not a string, integer or boolean';
  const b = { type: 'string', 'x-mcp-header': 'B' };
  const invalid: readonly (readonly [JsonObject, fault: string])[] = [
    [
      schemaWith({ a: declared, b: { type: 'string', 'x-mcp-header': 'a' } }),
      'two arguments declare the header mcp-param-a',
    ],
    [schemaWith({ a: { ...declared, type: 'object' } }), mistyped],
    [schemaWith({ a: { ...declared, type: ['string', 'null'] } }), mistyped],
    [schemaWith({ a: { 'x-mcp-header': 'A' } }), mistyped],
    [schemaWith({ a: { ...declared, 'x-mcp-header': '' } }), nameless],
    [schemaWith({ a: { ...declared, 'x-mcp-header': 'A B' } }), nameless],
    [schemaWith({ a: { ...declared, 'x-mcp-header': 'Ä' } }), nameless],
    [schemaWith({ a: { ...declared, 'x-mcp-header': 7 } }), nameless],
    [schemaWith({ a: declared }, { 'x-mcp-header': 'Root' }), nowhere('the schema itself')],
    [schemaWith({ a: declared, list: { type: 'array', items: b } }), nowhere('"list.items"')],
    [schemaWith({ a: declared }, { oneOf: [{ properties: { b } }] }), nowhere('"oneOf.b"')],
    [schemaWith({ a: declared }, { $defs: { b } }), nowhere('"$defs"')],
  ];
  for (const [one, fault] of invalid) {
    assert.equal(declaredBy(one), { declarations: [], fault }, JSON.stringify(one));
  }
});

test('are shortened in a fault', () => {
  const long = 'x'.repeat(10_000);
  const named = (schema: JsonObject) => declaredBy(schema).fault ?? '';
  assert.ok(named(schemaWith({ [long]: { ...declared, type: 'object' } })).length < 200);
  const twice = { ...declared, 'x-mcp-header': long };
  assert.ok(named(schemaWith({ a: twice, b: twice })).length < 200);
});

test('of the type number are reported as a fault, but still sent', () => {
  const one = schemaWith({ ratio: { type: 'number', 'x-mcp-header': 'Ratio' } });
  const fault = 'a header is declared for "ratio", which is not a string, integer or boolean';
  assert.is(declaredBy(one).fault, fault);
  assert.equal(headersOf(one, { ratio: 0.5 }), { 'mcp-param-ratio': '0.5' });
});

test('are found in a schema that contains itself, which is valid without any', () => {
  const loop: JsonObject = { type: 'object' };
  loop.properties = { self: loop };
  assert.equal(declaredBy(loop), { declarations: [], fault: undefined });
  loop.properties = { self: loop, a: declared };
  assert.match(declaredBy(loop).fault ?? '', 'two arguments');
});

test('are found in arguments that are kept as text as in those that are parsed', () => {
  for (const args of [
    '{"region":"a","size":1,"dry":true,"deep":{"er":"b"}}',
    '{ "deep" : {"er":"b","x":[{"er":"c"}]} , "region":"a","region":"\\u0062" }',
    '{"\\u0072egion":"}{","size":9007199254740993,"dry":{}}',
    '{"region":null,"size":-0,"deep":[],"x":"\\"size\\":2"}',
    '{}',
    '[{"region":"a"}]',
  ]) {
    const exact = parseExact(args) as JsonObject;
    assert.equal(headersOf(schema, JsonText.ofText(args)), headersOf(schema, exact), args);
  }
});

test('count as bytes with names, values and separators', () => {
  assert.is(headerBytes({}), 0);
  assert.is(headerBytes({ a: 'xy', bc: '' }), 'a: xy\r\nbc: \r\n'.length);
});

test.run();

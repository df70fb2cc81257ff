// What the input schema of a tool asks for in headers, and how it is written.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../src/domain/json.ts';
import { declaredBy, headerBytes, isUnwritable, paramHeaders } from '../../src/domain/param-headers.ts';
import { suite } from '../helpers/suite.ts';

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

function headersOf(inputSchema: unknown, args: unknown) {
  return paramHeaders(declaredBy(inputSchema).declarations, args);
}

test('are written for the arguments that the schema names', () => {
  const args = { region: 'grüße', size: 42, dry: false, other: 'x', deep: { er: ' y' } };
  assert.equal(headersOf(schema, args), {
    'mcp-param-region': '=?base64?Z3LDvMOfZQ==?=',
    'mcp-param-size': '42',
    'mcp-param-dry': 'false',
    'mcp-param-deep-er': '=?base64?IHk=?=',
  });
  assert.is(declaredBy(schema).isValid, true);
});

test('are not written without a value, or one that has no exact text', () => {
  assert.is(headersOf(schema, undefined), undefined);
  assert.is(headersOf(schema, { region: null, size: 2 ** 60, dry: {}, deep: 7 }), undefined);
  assert.is(headersOf(schemaWith({ toString: declared }), {}), undefined);
});

test('are none of a schema that names none, or is none', () => {
  for (const one of [schemaWith({ a: { type: 'string' } }), {}, undefined, 7, []]) {
    assert.equal(declaredBy(one), { declarations: [], isValid: true });
  }
});

test('make a tool invalid when they break the rules', () => {
  const invalid: readonly JsonObject[] = [
    schemaWith({ a: declared, b: { type: 'string', 'x-mcp-header': 'a' } }),
    schemaWith({ a: { ...declared, type: 'object' } }),
    schemaWith({ a: { ...declared, type: ['string', 'null'] } }),
    schemaWith({ a: { 'x-mcp-header': 'A' } }),
    schemaWith({ a: { ...declared, 'x-mcp-header': '' } }),
    schemaWith({ a: { ...declared, 'x-mcp-header': 'A B' } }),
    schemaWith({ a: { ...declared, 'x-mcp-header': 'Ä' } }),
    schemaWith({ a: { ...declared, 'x-mcp-header': 7 } }),
    schemaWith({ a: declared }, { 'x-mcp-header': 'Root' }),
    schemaWith({ a: declared, list: { type: 'array', items: { type: 'string', 'x-mcp-header': 'B' } } }),
    schemaWith({ a: declared }, { oneOf: [{ properties: { b: { type: 'string', 'x-mcp-header': 'B' } } }] }),
    schemaWith({ a: declared }, { $defs: { b: { type: 'string', 'x-mcp-header': 'B' } } }),
  ];
  for (const one of invalid) {
    assert.equal(declaredBy(one), { declarations: [], isValid: false }, JSON.stringify(one));
  }
});

test('about a number are invalid, but written all the same', () => {
  const one = schemaWith({ ratio: { type: 'number', 'x-mcp-header': 'Ratio' } });
  assert.is(declaredBy(one).isValid, false);
  assert.equal(headersOf(one, { ratio: 0.5 }), { 'mcp-param-ratio': '0.5' });
});

test('are not looked for without end, and a schema without any is never invalid', () => {
  const loop: JsonObject = { type: 'object' };
  loop.properties = { self: loop };
  assert.equal(declaredBy(loop), { declarations: [], isValid: true });
  loop.properties = { self: loop, a: declared };
  assert.is(declaredBy(loop).isValid, false);
});

test('that cannot be written are told from those that are not wanted', () => {
  const { declarations } = declaredBy(schema);
  assert.is(isUnwritable(declarations, { size: 2 ** 60 }), true);
  assert.is(isUnwritable(declarations, { region: ['x'] }), true);
  assert.is(isUnwritable(declarations, { size: 2, region: null, other: {} }), false);
  assert.is(isUnwritable(declarations, undefined), false);
});

test('take their names, their values and what stands around them', () => {
  assert.is(headerBytes({}), 0);
  assert.is(headerBytes({ a: 'xy', bc: '' }), 'a: xy\r\nbc: \r\n'.length);
});

test.run();

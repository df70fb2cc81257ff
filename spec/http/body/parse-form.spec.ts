import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { GatewayError, type ValidationItem } from '../../../src/domain/errors.ts';
import { parseFormBody } from '../../../src/http/body/parse.ts';
import { HTTP_LIMITS } from '../../../src/http/limits.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('parsing a form');
const parse = (text: string | Buffer) => parseFormBody(Buffer.from(text));

/** Location and type of what is wrong with a form. */
function issue(text: string | Buffer): Pick<ValidationItem, 'loc' | 'type'> | undefined {
  try {
    parse(text);
    return undefined;
  } catch (thrown) {
    const item = thrown instanceof GatewayError ? thrown.facts.items?.[0] : undefined;
    return item && { loc: item.loc, type: item.type };
  }
}

for (const [text, fields] of [
  ['username=ada&password=secret', { username: 'ada', password: 'secret' }],
  ['', {}],
  ['&&a=1&', { a: '1' }],
  ['a', { a: '' }],
  ['a=', { a: '' }],
  ['=a', { '': 'a' }],
  ['a=b=c', { a: 'b=c' }],
  ['a+b=c+d%2Be', { 'a b': 'c d+e' }],
  ['p=100%', { p: '100%' }],
  ['p=%zz%4', { p: '%zz%4' }],
  ['p=%E2%82%ac', { p: '€' }],
  ['p=€', { p: '€' }],
  ['p=%26%3D', { p: '&=' }],
] as const) {
  test(`reads ${JSON.stringify(text)}`, () => assert.equal(parse(text), fields));
}

test('reads what URLSearchParams writes', () => {
  const anyText = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\0', ''));
  fc.assert(
    fc.property(fc.dictionary(anyText, anyText, { maxKeys: 8 }), (fields) => {
      assert.equal({ ...parse(new URLSearchParams(fields).toString()) }, { ...fields });
    }),
  );
});

test('keeps a field called __proto__ a field', () => {
  const fields = parse('__proto__=x');
  assert.equal(Object.entries(fields), [['__proto__', 'x']]);
});

for (const [what, text, loc, type] of [
  ['a field twice', 'a=1&a=2', ['body', 'a'], 'value_error'],
  ['a field twice, written differently', 'a=1&%61=2', ['body', 'a'], 'value_error'],
  ['a NUL in a value', 'a=%00', ['body', 'a'], 'string_unicode'],
  ['a NUL in a name', 'a%00=1', ['body'], 'string_unicode'],
  ['an encoded surrogate', 'a=%ED%A0%80', ['body', 'a'], 'string_unicode'],
  ['bytes that are not UTF-8', Buffer.from([0x61, 0x3d, 0xc3, 0x28]), ['body', 'a'], 'string_unicode'],
  ['escapes that are not UTF-8', 'a=%c3(', ['body', 'a'], 'string_unicode'],
  ['too many fields', 'a&'.repeat(HTTP_LIMITS.formFields), ['body'], 'value_error'],
] as const) {
  test(`refuses ${what}`, () => assert.equal(issue(text), { loc, type }));
}

test('repeats neither values nor long names', () => {
  const name = 'n'.repeat(10_000);
  try {
    parse(`${name}=secret&${name}=secret`);
    assert.unreachable();
  } catch (thrown) {
    const told = JSON.stringify(thrown instanceof GatewayError ? thrown.facts : thrown);
    assert.ok(told.length < 400);
    assert.not.match(told, /secret/);
  }
});

test.run();

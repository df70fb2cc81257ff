import * as assert from 'uvu/assert';
import { GatewayError } from '../../../src/domain/errors.ts';
import { parseJsonBody } from '../../../src/http/body/parse.ts';
import { BAD_BODIES, ODD_BODIES } from '../../helpers/http-bad-bodies.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('parsing a JSON body');

function refusalOf(bytes: Buffer): GatewayError {
  try {
    parseJsonBody(bytes);
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown;
    throw thrown;
  }
  throw new Error('it was accepted');
}

for (const { what, bytes, code, issue } of BAD_BODIES.filter(
  ({ status }) => status === 400 || status === 422,
)) {
  test(`refuses ${what}`, () => {
    const { code: actual, facts } = refusalOf(bytes);
    assert.is(actual, code);
    const first = facts.items?.[0];
    assert.equal(first && { loc: first.loc, type: first.type }, issue);
  });
}

for (const { what, json } of ODD_BODIES) {
  test(`accepts ${what}`, () => {
    assert.equal(parseJsonBody(Buffer.from(json)), JSON.parse(json));
  });
}

test('says where the text breaks without repeating it', () => {
  const { message } = refusalOf(Buffer.from('{"password": "hunter2" oops}'));
  assert.match(message, /breaks at character 23/);
  assert.not.match(message, /hunter2|oops/);
});

test('keeps a __proto__ key from being a prototype', () => {
  const value = parseJsonBody(Buffer.from('{"__proto__":{"polluted":true}}'));
  assert.is(Object.getPrototypeOf(value), Object.prototype);
  assert.is(Reflect.get({}, 'polluted'), undefined);
});

test.run();

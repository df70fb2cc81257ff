// The secrets of an instance in texts of its server. The server chooses the texts, and the caller that registered it the secrets.
// Errors of programs and of HTTP servers at each door are in gateway/mcp/program-secrets.spec.ts and refusals.spec.ts.

import * as assert from 'uvu/assert';
import {
  cutWithoutSecrets,
  errorWithoutSecrets,
  MAX_HIDDEN,
  secretsOf,
  withoutSecrets,
} from '../../../src/domain/instances/hidden-secrets.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('hidden secrets');

/** A header of so many cookies. */
function cookies(count: number) {
  const values = Array.from({ length: count }, (_, at) => `c=${String(at).padStart(4, '0')}`);
  return { headers: { Cookie: values.join('; ') } };
}

test('are replaced wherever they are, short ones only as words', () => {
  const secrets = ['secret', 'pin', 'a.b'];
  assert.is(withoutSecrets('secretsecret, pins pin a.b axb a.bc', secrets), '******, pins *** *** axb a.bc');
  assert.is(withoutSecrets('pinpin pin', secrets), 'pinpin ***');
  assert.is(withoutSecrets('nothing', secrets), 'nothing');
});

test('of any length are hidden by their beginning, as far as a text has it', () => {
  const secret = `${'a'.repeat(40)}b${'a'.repeat(40)}`;
  assert.is(withoutSecrets(`x${secret}y${secret}`, [secret]), 'x***y***');
  assert.is(withoutSecrets(`${secret.slice(0, 60)}!`, [secret]), '***!');
  assert.is(withoutSecrets('a'.repeat(31), [secret]), 'a'.repeat(31));
});

test('hide all that a server says when they are too many', () => {
  const most = secretsOf(cookies(MAX_HIDDEN - 2)); // and the header, and what is behind its first word
  assert.is(withoutSecrets('0001 and more', most), '*** and more');
  const more = secretsOf(cookies(MAX_HIDDEN));
  assert.is(withoutSecrets('anything', more), '***');
  assert.is(cutWithoutSecrets('anything', 300, more), '***');
  assert.equal(errorWithoutSecrets({ code: 1, message: 'no', data: [1] }, more), { code: 1, message: '***' });
});

test('hide a text that would take long to look through, and leave out such data', () => {
  const secrets = secretsOf(cookies(10));
  const long = 'x'.repeat(1_000_000);
  assert.is(withoutSecrets(long, secrets), '***');
  const many = Array.from({ length: 50_000 }, (_, at) => `x${at}`);
  assert.equal(errorWithoutSecrets({ code: 1, message: 'no', data: many }, secrets), {
    code: 1,
    message: 'no',
  });
  const few = errorWithoutSecrets({ code: 1, message: 'no', data: ['0001', 7] }, secrets);
  assert.equal(few, { code: 1, message: 'no', data: ['***', 7] });
});

test.run();

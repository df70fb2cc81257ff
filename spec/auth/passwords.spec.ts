import * as assert from 'uvu/assert';
import { Passwords, passwordIssues } from '../../src/auth/passwords.ts';
import { suite } from '../helpers/suite.ts';
import { CountedPasswords } from './auth-harness.ts';

const test = suite('passwords');

test('a hash is bcrypt of the given cost, salted, and matches its password alone', async () => {
  const passwords = new Passwords(4);
  const hash = await passwords.hash('correct horse');
  assert.match(hash, /^\$2b\$04\$.{53}$/);
  assert.is.not(await passwords.hash('correct horse'), hash);
  assert.is(await passwords.matches('correct horse', hash), true);
  assert.is(await passwords.matches('correct horse ', hash), false);
  assert.is(await passwords.matches('Correct horse', hash), false);
});

test('the cost is 12 unless somebody says otherwise', async () => {
  assert.match(await new Passwords().hash('correct horse'), /^\$2b\$12\$/);
});

test('a password longer than 72 bytes matches nothing, although bcrypt reads its beginning only', async () => {
  const passwords = new CountedPasswords();
  const password = 'x'.repeat(72);
  const hash = await passwords.hash(password);
  assert.is(await passwords.matches(password, hash), true);
  assert.is(await passwords.matches(`${password}y`, hash), false);
  assert.is(passwords.compared.length, 2, 'compared all the same');
});

test('a new one that breaks the rule is one issue, which does not repeat it', () => {
  for (const [password, type] of [
    ['1234567', 'string_too_short'],
    ['x'.repeat(73), 'string_too_long'],
    ['1234\u00005678', 'string_unicode'],
    ['12345678', undefined],
  ] as const) {
    const issues = passwordIssues(password);
    const found = issues.map((issue) => [issue.loc, issue.type]);
    assert.equal(found, type === undefined ? [] : [[['body', 'password'], type]]);
    assert.not.ok(JSON.stringify(issues).includes(password));
  }
});

test.run();

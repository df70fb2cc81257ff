import * as assert from 'uvu/assert';
import { Passwords, passwordIssues } from '../../src/auth/passwords.ts';
import { suite } from '../helpers/suite.ts';
import { CountedPasswords, codeOf } from './auth-harness.ts';

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

test('a password for nobody costs one comparison, with a hash of the same cost that bcrypt takes for real', async () => {
  const passwords = new CountedPasswords();
  assert.is(await passwords.matches('whatever it is', undefined), false);
  assert.is(passwords.compared.length, 1);
  assert.match(passwords.compared[0]?.hash ?? '', /^\$2b\$04\$[./A-Za-z0-9]{53}$/);
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

test('two are hashed at once, twenty wait, the next is refused, whatever it was for', async () => {
  const passwords = new Passwords(4);
  const codes = await Promise.all(
    Array.from({ length: 25 }, () => codeOf(() => passwords.matches('some password', undefined))),
  );
  assert.equal(codes, [...Array(22).fill('none'), ...Array(3).fill('TOO_MANY_ATTEMPTS')]);
  const running = Array.from({ length: 22 }, () => passwords.hash('some password'));
  const refusal: unknown = await passwords.hash('some password').catch((thrown) => thrown);
  assert.is(refusal instanceof Error && refusal.message, 'Too many passwords at once; wait a moment.');
  await Promise.all(running);
});

test.run();

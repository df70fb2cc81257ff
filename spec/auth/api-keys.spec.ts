import { hash } from 'node:crypto';
import * as assert from 'uvu/assert';
import { isSecretOf, newKey, parseKey } from '../../src/auth/api-keys.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('API keys');

test('a new key is told apart by its id and kept as the SHA-256 of its secret', () => {
  const { key, id, secretHash } = newKey();
  assert.match(key, /^sd_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/);
  const parts = parseKey(key);
  assert.is(parts?.id, id);
  assert.is(hash('sha256', parts?.secret ?? ''), secretHash);
  assert.not.ok(secretHash.includes(parts?.secret ?? ''));
});

test('no two keys are alike', () => {
  const keys = Array.from({ length: 500 }, newKey);
  assert.is(new Set(keys.map(({ id }) => id)).size, 500);
  assert.is(new Set(keys.map(({ secretHash }) => secretHash)).size, 500);
});

test('a secret with underscores and hyphens is read whole', () => {
  const secret = `${'_-'.repeat(21)}_`;
  assert.equal(parseKey(`sd_0123456789abcdef_${secret}`), { id: '0123456789abcdef', secret });
});

test('any other form is no key', () => {
  const { key } = newKey();
  const others = [
    '',
    'sd_',
    key.slice(1),
    key.slice(0, -1),
    `${key}A`,
    `${key}\n`,
    ` ${key}`,
    key.toUpperCase(),
  ];
  const foreign = [
    key.replace('sd_', 'sk_'),
    key.replace(/.$/, '='),
    key.replace(/.$/, 'é'),
    key.replace('_', '-'),
  ];
  for (const text of [...others, ...foreign]) assert.is(parseKey(text), undefined, JSON.stringify(text));
});

test('only the secret itself belongs to its hash, and a broken hash belongs to nobody', () => {
  const { key, secretHash } = newKey();
  const secret = parseKey(key)?.secret ?? '';
  assert.is(isSecretOf(secret, secretHash), true);
  assert.is(isSecretOf(parseKey(newKey().key)?.secret ?? '', secretHash), false);
  for (const broken of ['', 'zz', secretHash.slice(2), `${secretHash}00`])
    assert.is(isSecretOf(secret, broken), false, broken);
});

test.run();

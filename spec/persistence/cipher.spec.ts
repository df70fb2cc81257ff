// An encrypted text can be decrypted only with its key and for its purpose.

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { encryptionKeyFrom } from '../../src/domain/encrypted-bytes.ts';
import { CipherError, createCipher } from '../../src/persistence/cipher.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('cipher');
const one = new Uint8Array(32).fill(1);
const other = new Uint8Array(32).fill(2);
const oneId = createHash('sha256').update(one).digest('hex').slice(0, 8);
const otherId = createHash('sha256').update(other).digest('hex').slice(0, 8);
const purpose = 'demo/files-1/env';
/** Made with other implementations of AES-256-GCM and HKDF: the key 32 times 1, the iv 12 times 7. */
const knownText = `v1.${oneId}.BwcHBwcHBwcHBwcHz5aL1mrckWK9WbLzGiZETrV6q7Xqj_MRx9JM0G8`;
const knownKey = '9959e0dc99bd7b82884fe3b0b83a73a4e3f9ec615918dc3b6ce63c3552188b5a';

test('decrypts any text that it encrypted', () => {
  const cipher = createCipher([one]);
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (text, why) => {
      assert.is(cipher.decrypt(cipher.encrypt(text, why), why), text);
    }),
  );
  const long = 'ü😀'.repeat(100_000);
  assert.is(cipher.decrypt(cipher.encrypt(long, purpose), purpose), long);
});

test('makes encrypted texts that name version and key, never repeat, and show nothing of the text', () => {
  const encrypted = createCipher([one, other]).encrypt('hunter2'.repeat(20), purpose);
  const [version, keyId, body = '', ...rest] = encrypted.split('.');
  assert.equal([version, keyId, rest], ['v1', oneId, []]);
  assert.match(body, /^[A-Za-z0-9_-]+$/);
  assert.not.match(Buffer.from(body, 'base64url').toString('latin1'), 'hunter2');
  const again = Array.from({ length: 100 }, () => createCipher([one]).encrypt('same', purpose));
  assert.is(new Set(again).size, 100);
  const { message } = refusal(() => createCipher([one]).encrypt('hunter2 \ud800', purpose));
  assert.is(message, 'the text to be encrypted is not well-formed Unicode');
});

test('decrypts a text that another implementation encrypted', () => {
  assert.is(createCipher([one]).decrypt(knownText, purpose), 'Bearer äöü');
});

test('encrypts with the new key after a rotation, and decrypts with both', () => {
  const before = createCipher([one]).encrypt('old', purpose);
  const rotated = createCipher([other, one]);
  const after = rotated.encrypt('new', purpose);
  assert.ok(after.startsWith(`v1.${otherId}.`));
  assert.equal([rotated.decrypt(before, purpose), rotated.decrypt(after, purpose)], ['old', 'new']);
  assert.is(createCipher([other]).decrypt(after, purpose), 'new');
  assert.equal([rotated.isCurrent(before), rotated.isCurrent(after)], [false, true]);
});

test('refuses a text whose key is missing, and names that key', () => {
  const encrypted = createCipher([one]).encrypt('hunter2', purpose);
  const { message } = refusal(() => createCipher([other]).decrypt(encrypted, purpose));
  assert.is(message, `encrypted with the key ${oneId}, which is not among the encryption keys`);
});

test('does not decrypt a text for another purpose', () => {
  const cipher = createCipher([one]);
  const encrypted = cipher.encrypt('hunter2', purpose);
  for (const wrong of ['', 'demo/files-2/env', `${purpose} `]) {
    const { message } = refusal(() => cipher.decrypt(encrypted, wrong));
    const found = message;
    assert.is(found, `encrypted with the key ${oneId}, but changed since, or encrypted for another purpose`);
  }
});

test('refuses a text of which any single bit was changed', () => {
  const cipher = createCipher([one]);
  const [, , body = ''] = cipher.encrypt('hunter2', purpose).split('.');
  const bytes = Buffer.from(body, 'base64url');
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    refusal(() => cipher.decrypt(`v1.${oneId}.${changed.toString('base64url')}`, purpose));
  }
});

test('refuses a text that is not encrypted, without repeating it', () => {
  const cipher = createCipher([one]);
  const encrypted = cipher.encrypt('', purpose);
  const short = Buffer.alloc(27).toString('base64url');
  const inputs = [
    ...['', 'hunter2', 'v1', 'v1..', `v1.${oneId}.`, `v1.${oneId}.${short}`, `v2${encrypted.slice(2)}`],
    ...[`${encrypted}.hunter2`, `${encrypted}\n`, ` ${encrypted}`, `${encrypted}=`, `${encrypted}+`],
  ];
  for (const input of inputs) {
    const { message } = refusal(() => cipher.decrypt(input, purpose));
    assert.is(message, 'this is not an encrypted text', JSON.stringify(input));
  }
});

test('derives a key by HKDF-SHA256, which depends on secret and label', () => {
  const secret = 'a secret of at least thirty-two bytes';
  const hex = (key: Uint8Array): string => Buffer.from(key).toString('hex');
  assert.is(hex(encryptionKeyFrom(secret, 'stagedoor encryption')), knownKey);
  const keys = [
    encryptionKeyFrom(secret, 'stagedoor encryption'),
    encryptionKeyFrom(secret, 'stagedoor signing'),
    encryptionKeyFrom(`${secret}.`, 'stagedoor encryption'),
  ];
  assert.is(new Set(keys.map(hex)).size, 3);
  assert.equal(new Set(keys.map(({ length }) => length)), new Set([32]));
});

test.run();

function refusal(act: () => unknown): CipherError {
  try {
    act();
  } catch (thrown) {
    if (!(thrown instanceof CipherError)) throw thrown;
    assert.is(thrown.name, 'CipherError');
    assert.not.match(thrown.message, /hunter2/);
    return thrown;
  }
  throw new Error('it was not refused');
}

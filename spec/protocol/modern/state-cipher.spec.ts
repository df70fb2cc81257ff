import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { StateCipher } from '../../../src/protocol/modern/state-cipher.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('encrypted state');

const KEY = Buffer.alloc(32, 7);

function encryptedText(cipher: StateCipher, content = { i: 'a', s: 'state' }, bound = 'ada call-1'): string {
  const text = cipher.encrypt(content, bound);
  if (text === undefined) throw new Error('there was too much to encrypt');
  return text;
}

test('encrypts equal content differently each time, and shows nothing of it', () => {
  const cipher = new StateCipher([KEY], systemClock);
  const content = { i: 'secret-instance', s: 'x' };
  const [one, two] = [encryptedText(cipher, content), encryptedText(cipher, content)];
  assert.is.not(one, two);
  assert.not.match(Buffer.from(one.slice(4), 'base64url').toString('latin1'), /secret/);
});

test('does not decrypt a text in which one character was changed, added or removed', () => {
  const cipher = new StateCipher([KEY], systemClock);
  const text = encryptedText(cipher);
  for (let at = 0; at < text.length; at += 1) {
    const other = text[at] === 'A' ? 'B' : 'A';
    assert.is(
      cipher.decrypt(text.slice(0, at) + other + text.slice(at + 1), 'ada call-1'),
      undefined,
      `${at}`,
    );
  }
  const changed = [`${text}-TAMPERED`, `${text}=`, `${text} `, ` ${text}`, text.slice(0, -1)];
  for (const one of changed) assert.is(cipher.decrypt(one, 'ada call-1'), undefined, one);
});

test('does not decrypt texts of another format, or that are too short', () => {
  const cipher = new StateCipher([KEY], systemClock);
  for (const text of [
    '',
    'sd2.',
    'sd2.AAAA',
    `sd2.${'A'.repeat(40)}`,
    'eyJhbGciOiJIUzI1NiJ9.e30.x',
    `sd1.${encryptedText(cipher).slice(4)}`,
  ]) {
    assert.is(cipher.decrypt(text, 'ada call-1'), undefined, text);
  }
});

test('encrypts with the first key and decrypts with all', () => {
  const [old, next] = [KEY, Buffer.alloc(32, 8)];
  const rotating = new StateCipher([next, old], systemClock);
  const content = { i: 'a', s: 'state' };
  const before = new StateCipher([old], systemClock);
  for (const text of [encryptedText(before), encryptedText(rotating)])
    assert.equal(rotating.decrypt(text, 'ada call-1'), content);
  assert.equal(new StateCipher([next], systemClock).decrypt(encryptedText(rotating), 'ada call-1'), content);
  assert.is(before.decrypt(encryptedText(rotating), 'ada call-1'), undefined);
});

test('neither encrypts nor decrypts more than 64 kB', () => {
  const cipher = new StateCipher([KEY], systemClock);
  assert.ok(cipher.encrypt({ s: 'x'.repeat(48_000) }, 'b'));
  assert.is(cipher.encrypt({ s: 'x'.repeat(50_000) }, 'b'), undefined);
  assert.is(cipher.decrypt(`sd2.${'A'.repeat(64 * 1024)}`, 'b'), undefined);
});

test.run();

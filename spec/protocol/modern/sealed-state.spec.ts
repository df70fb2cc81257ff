import * as assert from 'uvu/assert';
import { Sealer } from '../../../src/protocol/modern/sealed-state.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('sealed state');

const KEY = Buffer.alloc(32, 7);
const HOUR_MS = 60 * 60_000;

function sealedText(sealer: Sealer, content = { i: 'a', s: 'state' }, bound = 'ada call-1'): string {
  const text = sealer.seal(content, bound);
  if (text === undefined) throw new Error('there was too much to seal');
  return text;
}

test('opens what was sealed with the same key for the same purpose', () => {
  const text = sealedText(new Sealer(KEY), { i: 'a', s: 'grüße 日本' });
  assert.match(text, /^sd1\.[\w-]+$/);
  assert.equal(new Sealer(Buffer.from(KEY)).open(text, 'ada call-1'), { i: 'a', s: 'grüße 日本' });
});

test('seals the same thing differently each time, and shows nothing of it', () => {
  const sealer = new Sealer(KEY);
  const content = { i: 'secret-instance', s: 'x' };
  const [one, two] = [sealedText(sealer, content), sealedText(sealer, content)];
  assert.is.not(one, two);
  assert.not.match(Buffer.from(one.slice(4), 'base64url').toString('latin1'), /secret/);
});

test('does not open with another key', () => {
  assert.is(new Sealer(Buffer.alloc(32, 8)).open(sealedText(new Sealer(KEY)), 'ada call-1'), undefined);
});

test('does not open for another owner or another call', () => {
  const sealer = new Sealer(KEY);
  const text = sealedText(sealer);
  for (const bound of ['bob call-1', 'ada call-2', '', 'ada call-1 ']) {
    assert.is(sealer.open(text, bound), undefined, bound);
  }
});

test('does not open when a single character was changed, added or taken away', () => {
  const sealer = new Sealer(KEY);
  const text = sealedText(sealer);
  for (let at = 0; at < text.length; at += 1) {
    const other = text[at] === 'A' ? 'B' : 'A';
    assert.is(sealer.open(text.slice(0, at) + other + text.slice(at + 1), 'ada call-1'), undefined, `${at}`);
  }
  const changed = [`${text}-TAMPERED`, `${text}=`, `${text} `, ` ${text}`, text.slice(0, -1)];
  for (const one of changed) assert.is(sealer.open(one, 'ada call-1'), undefined, one);
});

test('does not open what is not its own, or too short', () => {
  const sealer = new Sealer(KEY);
  for (const text of [
    '',
    'sd1.',
    'sd1.AAAA',
    'eyJhbGciOiJIUzI1NiJ9.e30.x',
    `sd2.${sealedText(sealer).slice(4)}`,
  ]) {
    assert.is(sealer.open(text, 'ada call-1'), undefined, text);
  }
});

test('opens for one hour', () => {
  let nowMs = 5_000_000;
  const sealer = new Sealer(KEY, () => nowMs);
  const text = sealedText(sealer);
  nowMs += HOUR_MS - 1;
  assert.ok(sealer.open(text, 'ada call-1'));
  nowMs += 1;
  assert.is(sealer.open(text, 'ada call-1'), undefined);
});

test('refuses to seal, and to look at, more than 64 kB', () => {
  const sealer = new Sealer(KEY);
  assert.ok(sealer.seal({ s: 'x'.repeat(48_000) }, 'b'));
  assert.is(sealer.seal({ s: 'x'.repeat(50_000) }, 'b'), undefined);
  assert.is(sealer.open(`sd1.${'A'.repeat(64 * 1024)}`, 'b'), undefined);
});

test.run();

// Which keys there are, in which order, and that no key comes from a secret that is in the database.

import { randomBytes } from 'node:crypto';
import * as assert from 'uvu/assert';
import { encryptionKeys, type SigningSecret } from '../../src/auth/signing-secret.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('encryption keys');

const secret = randomBytes(32);
const hex = (keys: readonly Uint8Array[]): string[] => keys.map((key) => Buffer.from(key).toString('hex'));

test('come from the signing secret where that is outside the database, and from nowhere else', () => {
  const sources: [SigningSecret['source'], number][] = [
    ['configured', 1],
    ['file', 1],
    ['database', 0],
    ['process', 0],
  ];
  for (const [source, count] of sources) {
    const keys = encryptionKeys({ configured: [], signing: { secret, source } });
    assert.is(keys.length, count, source);
    for (const key of keys) {
      assert.is(key.byteLength, 32);
      assert.not.equal(hex([key]), hex([secret]));
    }
  }
  assert.equal(encryptionKeys({ configured: [] }), []);
});

test('keep the order in which they were configured, before the signing secret', () => {
  const [one, other] = ['a'.repeat(32), 'b'.repeat(40)];
  const keys = encryptionKeys({ configured: [one, other], signing: { secret, source: 'file' } });
  assert.is(new Set(hex(keys)).size, 3);
  assert.equal(hex(keys.slice(0, 1)), hex(encryptionKeys({ configured: [one] })));
  assert.equal(hex(keys.slice(1, 2)), hex(encryptionKeys({ configured: [other] })));
  assert.equal(
    hex(keys.slice(2)),
    hex(encryptionKeys({ configured: [], signing: { secret, source: 'file' } })),
  );
});

test.run();

// Which proofs of a gateway fit which connection, and how many it gives.

import { hash } from 'node:crypto';
import * as assert from 'uvu/assert';
import { parseKey } from '../../../src/auth/accounts/api-keys.ts';
import { isProof, proofOf } from '../../../src/auth/secrets/proof.ts';
import { suite } from '../../helpers/suite.ts';
import { authHarness, codeOf } from '../auth-harness.ts';

const test = suite('the proof of a gateway');
const own = { address: '127.0.0.1', port: 8080 };
const nonce = 'n'.repeat(22);

test('fits one secret, one nonce, one address and one port', () => {
  const secret = hash('sha256', 'secret');
  const proof = proofOf(secret, nonce, own);
  assert.is(isProof(proof, proofOf(secret, nonce, { ...own, address: '::ffff:127.0.0.1' })), true);
  const others = [
    proofOf(hash('sha256', 'other'), nonce, own),
    proofOf(secret, 'm'.repeat(22), own),
    proofOf(secret, nonce, { ...own, port: 8081 }),
    proofOf(secret, nonce, { ...own, address: '127.0.0.2' }),
    proofOf(secret, nonce, { ...own, address: '::1' }),
    ...['', undefined, proof.slice(1), `é${proof.slice(1)}`],
  ];
  for (const other of others) assert.is(isProof(other, proof), false);
});

test('needs one query for a key, and no database for a known key or a token', async () => {
  const { auth, watch } = authHarness();
  const { key } = await auth.accounts.createApiKey({ name: 'one', permissions: ['tools:call'] });
  const { id = '', secret = '' } = parseKey(key) ?? {};
  const prove = (keyId: string) => auth.proofs.prove({ keyId, nonce }, own, '10.0.0.1');
  watch.asked.length = 0;
  for (let count = 0; count < 3; count += 1)
    assert.is(await prove(id), proofOf(hash('sha256', secret), nonce, own));
  assert.equal(watch.asked, ['findApiKeys']);
  watch.isAway = true;
  assert.is(await prove(id), proofOf(hash('sha256', secret), nonce, own));
  assert.is(await codeOf(() => prove('3f6c1d0e-8a64-4d53-9f55-5a1c2b7e9d10')), 'none');
  assert.is(await codeOf(() => prove('0123456789abcdef')), 'DATABASE_UNAVAILABLE');
});

test('is given 3,000 times a minute to one address, with eight queries at a time', async () => {
  const { auth, watch } = authHarness();
  const prove = (keyId: string, address: string) =>
    codeOf(() => auth.proofs.prove({ keyId, nonce }, own, address));
  const codes: string[] = [];
  for (let count = 0; count < 3_001; count += 1) codes.push(await prove('token', '10.0.0.1'));
  assert.equal([codes.filter((code) => code === 'none').length, codes.at(-1)], [3_000, 'TOO_MANY_ATTEMPTS']);
  assert.is(await prove('token', '10.0.0.2'), 'none');
  const gate = Promise.withResolvers<void>();
  watch.gate = gate.promise;
  const many = Array.from({ length: 9 }, (_, index) => prove(`000000000000000${index}`, '10.0.0.3'));
  gate.resolve();
  assert.equal(
    (await Promise.all(many)).filter((code) => code !== 'none'),
    ['TOO_MANY_ATTEMPTS'],
  );
});

test.run();

// Instances as rows: what is encrypted, and that all of it comes back.

import * as assert from 'uvu/assert';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import { CipherError } from '../../src/persistence/cipher.ts';
import { type Encryption, instanceOf, rowOfInstance } from '../../src/persistence/orm-store.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('instance rows');

const definition: InstanceDefinition = {
  id: 'i',
  serverId: 's',
  template: 't',
  transport: 'http',
  endpoint: 'http://h/mcp',
  command: 'run',
  args: ["it's", '漢字'],
  workingDir: '/w',
  env: { A: 'planted-secret' },
  headers: { B: 'planted-secret' },
  weight: 3,
  metadata: { a: [1, null] },
  source: 'file',
  nodeId: 'n',
  fingerprint: 'f',
  createdAt: '2026-01-02T03:04:05.678Z',
  updatedAt: '2026-01-02T03:04:05.679Z',
};
const { endpoint: _e, command: _c, workingDir: _w, nodeId: _n, fingerprint: _f, ...least } = definition;
/** Reversible, and bound to its field, as a cipher is. */
const encryption: Encryption = {
  encrypt: (text, field) => `${field}.${Buffer.from(text).toString('base64url')}`,
  decrypt: (encrypted, field) => {
    const [owner, text = ''] = encrypted.split('.');
    assert.is(owner, field);
    return Buffer.from(text, 'base64url').toString();
  },
};
const noEncryption: Encryption = {
  encrypt: () => {
    throw new Error('there was nothing to encrypt');
  },
  decrypt: () => {
    throw new Error('there was nothing to decrypt');
  },
};

test('every field comes back, and so does their absence', () => {
  for (const each of [definition, { ...least, env: {}, headers: {} }]) {
    const row = { ...rowOfInstance(each, encryption), template: 't', id: 'i', position: 1 };
    assert.equal(instanceOf(row, encryption), each);
  }
});

test('hides the values of variables and headers, and encrypts no empty field', () => {
  assert.not.match(JSON.stringify(rowOfInstance(definition, encryption)), 'planted-secret');
  const row = {
    ...rowOfInstance({ ...least, env: {}, headers: {} }, noEncryption),
    template: 't',
    id: 'i',
    position: 1,
  };
  assert.equal([row.env, row.headers], [null, null]);
  assert.equal(instanceOf(row, noEncryption).env, {});
});

test('is readable but for its secrets when one of them cannot be decrypted', () => {
  const row = { ...rowOfInstance(definition, encryption), template: 't', id: 'i', position: 1 };
  for (const unreadable of ['env', 'headers']) {
    const decrypt: Encryption['decrypt'] = (encrypted, field) => {
      if (field === unreadable) throw new CipherError(`"${field}" cannot be read`);
      return encryption.decrypt(encrypted, field);
    };
    assert.equal(instanceOf(row, { ...encryption, decrypt }), {
      ...definition,
      env: {},
      headers: {},
      locked: `"${unreadable}" cannot be read`,
    });
  }
  const broken = new Error('a mistake of ours');
  const decrypt: Encryption['decrypt'] = () => {
    throw broken;
  };
  assert.throws(
    () => instanceOf(row, { ...encryption, decrypt }),
    (thrown: unknown) => thrown === broken,
  );
});

test.run();

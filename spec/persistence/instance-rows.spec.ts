// Instances as rows: what is sealed, and that all of it comes back.

import * as assert from 'uvu/assert';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import { CipherError } from '../../src/persistence/cipher.ts';
import { type Encryption, instanceOf, rowOfInstance } from '../../src/persistence/instance-rows.ts';
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
/** Reversible, and bound to its field, as a vault is. */
const seals: Encryption = {
  seal: (text, field) => `${field}.${Buffer.from(text).toString('base64url')}`,
  open: (sealed, field) => {
    const [owner, text = ''] = sealed.split('.');
    assert.is(owner, field);
    return Buffer.from(text, 'base64url').toString();
  },
};
const noSeals: Encryption = {
  seal: () => {
    throw new Error('there was nothing to seal');
  },
  open: () => {
    throw new Error('there was nothing to open');
  },
};

test('every field comes back, and so does their absence', () => {
  for (const each of [definition, { ...least, env: {}, headers: {} }]) {
    const row = { ...rowOfInstance(each, seals), template: 't', id: 'i', position: 1 };
    assert.equal(instanceOf(row, seals), each);
  }
});

test('hides the values of variables and headers, and seals nothing that is empty', () => {
  assert.not.match(JSON.stringify(rowOfInstance(definition, seals)), 'planted-secret');
  const row = {
    ...rowOfInstance({ ...least, env: {}, headers: {} }, noSeals),
    template: 't',
    id: 'i',
    position: 1,
  };
  assert.equal([row.env, row.headers], [null, null]);
  assert.equal(instanceOf(row, noSeals).env, {});
});

test('is readable but for its secrets when one of them cannot be opened', () => {
  const row = { ...rowOfInstance(definition, seals), template: 't', id: 'i', position: 1 };
  for (const unreadable of ['env', 'headers']) {
    const open: Encryption['open'] = (sealed, field) => {
      if (field === unreadable) throw new CipherError(`"${field}" cannot be read`);
      return seals.open(sealed, field);
    };
    assert.equal(instanceOf(row, { ...seals, open }), {
      ...definition,
      env: {},
      headers: {},
      locked: `"${unreadable}" cannot be read`,
    });
  }
  const broken = new Error('a mistake of ours');
  const open: Encryption['open'] = () => {
    throw broken;
  };
  assert.throws(
    () => instanceOf(row, { ...seals, open }),
    (thrown: unknown) => thrown === broken,
  );
});

test.run();

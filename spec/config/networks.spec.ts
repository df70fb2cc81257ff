// Addresses and networks as an operator writes them.

import * as assert from 'uvu/assert';
import { network } from '../../src/config/setting-types.ts';
import { DENIED_NETWORKS } from '../../src/domain/endpoint.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('networks');

const readNetwork = (text: string) => network.read(text, '/');

test('gives addresses and networks their CIDR form', () => {
  assert.is(readNetwork('10.1.2.3'), '10.1.2.3/32');
  assert.is(readNetwork('10.0.0.0/8'), '10.0.0.0/8');
  assert.is(readNetwork('0.0.0.0/0'), '0.0.0.0/0');
  assert.is(readNetwork('FD00::/8'), 'fd00::/8');
  assert.is(readNetwork('::1'), '::1/128');
});

test('refuses what is neither', () => {
  for (const text of ['', '10.0.0', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/8/8', '::/129']) {
    assert.is(readNetwork(text), undefined, text);
  }
  for (const text of ['fe80::1%eth0', 'localhost', '10.0.0.0/8 ', '010.0.0.1']) {
    assert.is(readNetwork(text), undefined, text);
  }
});

test('reads every network that is denied by default as it is', () => {
  assert.equal(
    DENIED_NETWORKS.map((text) => readNetwork(text)),
    DENIED_NETWORKS,
  );
});

test.run();

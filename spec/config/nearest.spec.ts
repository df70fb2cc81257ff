// The word somebody probably meant.

import * as assert from 'uvu/assert';
import { nearest } from '../../src/config/nearest.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('nearest word');

test('is the one with the fewest insertions, deletions and replacements', () => {
  assert.is(nearest('prot', ['host', 'port', 'registry_file']), 'port');
  assert.is(nearest('pport', ['host', 'port']), 'port');
  assert.is(nearest('auth.enable', ['auth.secret_key', 'auth.enabled']), 'auth.enabled');
  assert.is(nearest('', ['abc', 'a']), 'a');
  assert.is(nearest('port', ['port', 'ports']), 'port');
});

test('is the first of equals, and nothing among nothing', () => {
  assert.is(nearest('x', ['b', 'a']), 'b');
  assert.is(nearest('x', []), '');
});

test.run();

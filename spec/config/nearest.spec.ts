// The word somebody probably meant.

import * as assert from 'uvu/assert';
import { nearest, nearMiss } from '../../src/config/nearest.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('nearest word');

test('is the one with the fewest insertions, deletions and replacements', () => {
  assert.is(nearest('prot', ['host', 'port', 'registry_file']), 'port');
  assert.is(nearest('pport', ['host', 'port']), 'port');
  assert.is(nearest('auth.enable', ['auth.secret_key', 'auth.enabled']), 'auth.enabled');
  assert.is(nearest('', ['abc', 'a']), 'a');
  assert.is(nearest('prot', ['pot12', 'part', 'port']), 'port', 'a swap of neighbours is one slip');
  assert.is(nearest('ab', ['xb', 'ba']), 'xb', 'the first of equals');
  assert.is(nearest('x', []), '');
});

test('is a near miss when it has few slips for its length, and nothing otherwise', () => {
  const words = ['start', 'login', 'list', 'set-password', 'api-keys', 'PORT', 'API_KEY_LIMIT'];
  const cases: readonly (readonly [string, string | undefined])[] = [
    ['strat', 'start'],
    ['lits', 'list'],
    ['set-passwd', 'set-password'],
    ['apikeys', 'api-keys'],
    ['PROT', 'PORT'],
    ['API_KEY_LIMT', 'API_KEY_LIMIT'],
    ['start', 'start'],
    ['audit', undefined],
    ['drain', undefined],
    ['POSH', undefined],
    ['APIKEYLIMITS', undefined],
    ['x', undefined],
    ['', undefined],
  ];
  for (const [written, meant] of cases) assert.is(nearMiss(written, words), meant, written);
  assert.is(nearMiss('start', []), undefined);
});

test.run();

// The table of settings holds together: names are unique, secrets stay off the command line, defaults are of their kind.

import * as assert from 'uvu/assert';
import { SETTINGS, ALL_SETTINGS as settings } from '../../src/config/settings.ts';
import { STRATEGY_NAMES } from '../../src/domain/policy.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('table of settings');

function duplicates(names: readonly (string | undefined)[]): (string | undefined)[] {
  return names.filter((name, index) => name !== undefined && names.indexOf(name) !== index);
}

test('has each key, flag and variable once', () => {
  assert.equal(duplicates(settings.map(({ key }) => key)), []);
  assert.equal(duplicates(settings.map(({ flag }) => flag)), []);
  assert.equal(duplicates(settings.map(({ variable }) => variable)), []);
});

test('has no key that is also a section', () => {
  const keys = settings.map(({ key }) => key);
  assert.equal(
    keys.filter((key) => keys.some((other) => other.startsWith(`${key}.`))),
    [],
  );
});

test('keeps secrets off the command line, and gives every other setting a flag', () => {
  for (const { key, flag, secret, kind } of settings) {
    if (secret === undefined) assert.type(flag, 'string', key);
    // A database without a password in its URL is no secret; one with is refused.
    else if (flag !== undefined) assert.type(kind.holdsSecret, 'function', key);
  }
  assert.equal(
    settings.filter(({ secret, flag }) => secret && flag !== undefined).map(({ key }) => key),
    ['database_url'],
  );
});

test('has defaults that could have been written', () => {
  for (const { key, kind, default: value } of settings) {
    if (value !== undefined) assert.equal(kind.read(kind.show(value), '/'), value, key);
  }
});

test('offers every strategy there is', () => {
  for (const name of STRATEGY_NAMES) assert.is(SETTINGS.defaultPolicy.strategy.kind.read(name, '/'), name);
});

test('names the variable of a setting by its flag, else by its key', () => {
  assert.is(SETTINGS.sync.namespace.variable, 'SYNC_NAMESPACE');
  assert.is(SETTINGS.defaultPolicy.maxRetries.variable, 'MAX_RETRIES');
  assert.is(SETTINGS.encryptionKeys.variable, 'ENCRYPTION_KEY');
  assert.is(SETTINGS.secretKey.variable, 'SECRET_KEY');
});

test.run();

// The versions that the gateway tells.

import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { API_VERSION, VERSION } from '../../src/domain/version.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('version');

test('is the one of package.json', () => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  assert.is(VERSION, JSON.parse(text).version);
});

test('tells the version of the API that the spec names', () => {
  assert.is(API_VERSION, '2.0.0');
});

test.run();

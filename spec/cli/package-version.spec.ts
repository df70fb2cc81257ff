import * as assert from 'uvu/assert';
import { packageVersion } from '../../src/cli/package-version.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('package version');

test('is a semantic version', () => {
  assert.match(packageVersion(), /^\d+\.\d+\.\d+/);
});

test.run();

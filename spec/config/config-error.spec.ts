// The error that ends a start with exit code 2.

import * as assert from 'uvu/assert';
import { ConfigError } from '../../src/config/config-error.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('configuration error');

test('has a name to tell it by, and a cause only when there is one', () => {
  const cause = new Error('EACCES');
  const error = new ConfigError('gateway.yaml: the file cannot be read (EACCES)', cause);
  assert.equal([error.name, error.cause], ['ConfigError', cause]);
  assert.is('cause' in new ConfigError('--port: expected a port'), false);
});

test.run();

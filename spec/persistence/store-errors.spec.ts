// The errors of opening a store.

import * as assert from 'uvu/assert';
import { StoreOpenError, UrlError } from '../../src/persistence/store-errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('store errors');

test('carry their message and cause, and can be told apart', () => {
  const cause = new Error('why');
  const error = new StoreOpenError('it is away', cause);
  assert.equal([error.message, error.cause, error.name], ['it is away', cause, 'StoreOpenError']);
  assert.is('cause' in new StoreOpenError('it is away'), false);
  assert.equal([new UrlError('x').name, new UrlError('x') instanceof StoreOpenError], ['UrlError', false]);
});

test.run();

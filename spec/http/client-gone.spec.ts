import * as assert from 'uvu/assert';
import { ClientGone } from '../../src/http/client-gone.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('a client that went away');

test('is told apart from every other error', () => {
  const gone = new ClientGone();
  assert.instance(gone, Error);
  assert.is(gone.name, 'ClientGone');
  assert.not('code' in gone);
});

test.run();

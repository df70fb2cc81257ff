// Which errors of Node's sockets mean that the connection failed.

import { connect } from 'node:net';
import * as assert from 'uvu/assert';
import { isNetworkTrouble } from '../../src/persistence/store-errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('network trouble');

test('knows a refused connection by the code that Node gives it', async () => {
  const error = await new Promise<NodeJS.ErrnoException>((resolve) =>
    connect(1, '127.0.0.1').on('error', resolve),
  );
  assert.is(isNetworkTrouble(error.code ?? ''), true);
});

test('takes nothing else for it', () => {
  for (const code of ['', 'ERR_INVALID_ARG_TYPE', '23505', 'ER_DUP_ENTRY', 'SQLITE_CONSTRAINT'])
    assert.is(isNetworkTrouble(code), false);
});

test.run();

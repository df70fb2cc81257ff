// Oracle: options and errors.

import * as assert from 'uvu/assert';
import { oracle } from '../../../src/persistence/databases/oracle.ts';
import { suite } from '../../helpers/suite.ts';
import { connectOptions, failuresOf, statementsOnConnect } from './connect-options.ts';

const test = suite('Oracle');

test('takes its options from the URL: the service is the path or an option, the schema is the user', () => {
  const options = (url: string) => oracle.options(connectOptions(url));
  const { clientUrl, user, password, dbName } = options('oracle://ada:pw@h:1522/FREEPDB1');
  assert.equal(
    [clientUrl, user, password, dbName],
    ['tcp://h:1522/FREEPDB1?connect_timeout=5', 'ada', 'pw', 'ada'],
  );
  assert.is(
    options('oracle://ada@h/?service_name=S&tls=true').clientUrl,
    'tcps://h:1521/S?connect_timeout=5',
  );
});

test('encrypts for every way to say yes, and refuses what is neither yes nor no', () => {
  const protocol = (tls: string) =>
    String(oracle.options(connectOptions(`oracle://ada@h/S?tls=${tls}`)).clientUrl).split(':')[0];
  assert.equal(['yes', '1', 'TRUE', 'no'].map(protocol), ['tcps', 'tcps', 'tcps', 'tcp']);
  assert.throws(() => protocol('on'), /tls is true or false/);
});

test('limits the time of calls, and compares by code points, on every session', async () => {
  const session = { callTimeout: 0, execute: async () => {} };
  await oracle.options(connectOptions('oracle://a@h/S')).onCreateConnection?.(session);
  assert.is(session.callTimeout, 4_000);
  assert.match(
    (await statementsOnConnect(oracle, 'oracle://a@h/S')).join(),
    'nls_comp = binary nls_sort = binary',
  );
});

test('locks a table of its own, which may be there already', async () => {
  const asked: string[] = [];
  await oracle.lock.take(
    async (sql) => {
      asked.push(sql);
      if (sql.startsWith('create')) throw new Error('ORA-00955: name is already used by an existing object');
      return [];
    },
    1_500,
    'x',
  );
  assert.is(asked.at(-1), 'lock table "stagedoor_lock" in exclusive mode wait 2');
  const refused = await oracle.lock
    .take(() => Promise.reject(new Error('ORA-01031: insufficient privileges')), 1, 'x')
    .catch((thrown: unknown) => thrown);
  assert.match(String(refused), 'ORA-01031');
});

test('tells its failures apart', () => {
  assert.equal(failuresOf(oracle, [1017, 12514, 54, 60]), [
    'credentials',
    'no-database',
    'conflict',
    'conflict',
  ]);
  const away = [
    3113,
    12541,
    1034,
    28,
    'NJS-500',
    'NJS-040',
    'ECONNREFUSED',
    { message: 'ORA-12170: timeout' },
  ];
  assert.equal(new Set(failuresOf(oracle, away)), new Set(['unavailable']));
  assert.equal(failuresOf(oracle, [1, 942, 900, 'NJS-044']), [undefined, undefined, undefined, undefined]);
});

test.run();

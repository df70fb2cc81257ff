// The facts of errors of databases, however they are wrapped.

import * as assert from 'uvu/assert';
import {
  driverErrorOf,
  isNetworkError,
  StoreOpenError,
  withoutValues,
} from '../../src/persistence/store-errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('store errors');

test('reads codes and numbers of every driver', () => {
  const of = (facts: object) => driverErrorOf(Object.assign(new Error('m'), facts));
  for (const [facts, code, number] of [
    [{ code: '57P01' }, '57P01', 0],
    [{ code: 'ER_DUP_ENTRY', errno: 1062 }, 'ER_DUP_ENTRY', 1062],
    [{ code: 'EREQUEST', number: 2627 }, 'EREQUEST', 2627],
    [{ errorNum: 1, code: 'ORA-00001' }, 'ORA-00001', 1],
    // libuv's, which says what the code says.
    [{ code: 'ECONNREFUSED', errno: -111 }, 'ECONNREFUSED', 0],
  ] as const)
    assert.equal(of(facts), { code, number, isFatal: false, message: 'm' });
});

test('reads of pg and mysql2 whether the connection is lost with it', () => {
  const of = (facts: object) => driverErrorOf(Object.assign(new Error('m'), facts))?.isFatal;
  const sqlState = 'HY000';
  for (const [facts, isFatal] of [
    [{ code: '55000', severity: 'FATAL' }, true],
    [{ code: 'X', severity: 'PANIC' }, true],
    [{ errno: 4151, fatal: true }, true],
    [{ errno: 4151, sqlState, sql: undefined }, true],
    [{ code: '55000', severity: 'ERROR' }, false],
    [{ errno: 1062, fatal: false }, false],
    [{ errno: 1062 }, false],
    [{ code: '23514', severity: 'ERROR', sqlState: undefined }, false],
    [{ errno: 1062, sqlState, sql: 'insert' }, false],
  ] as const)
    assert.is(of(facts), isFatal, JSON.stringify(facts));
});

test('looks into causes and into several tries to connect', () => {
  const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
  const inner = { code: 'ECONNREFUSED', number: 0, isFatal: false };
  assert.equal(driverErrorOf(new Error('outer', { cause: refused })), {
    ...inner,
    message: 'outer: refused',
  });
  assert.equal(driverErrorOf(new AggregateError([refused, refused], 'both')), {
    ...inner,
    message: 'both: refused',
  });
});

test('has nothing to say of what is no error', () => {
  for (const thrown of [undefined, null, 'text', { code: 'ECONNREFUSED' }])
    assert.is(driverErrorOf(thrown), undefined);
  assert.equal(driverErrorOf(new Error('plain')), { code: '', number: 0, isFatal: false, message: 'plain' });
});

test('says which constraint refused, and no value of the statement', () => {
  const inner = Object.assign(new Error('Failing row contains (hash)'), {
    code: '23514',
    constraint: 'c',
    table: 't',
  });
  const thrown = new Error("insert into t values ('hash')", { cause: inner });
  const said = withoutValues(thrown, driverErrorOf(thrown));
  assert.is(String(said), 'Error: the database refused (Error: 23514), table t, constraint c');
  assert.is(said instanceof Error && said.cause, undefined);
});

test('leaves alone what no driver threw', () => {
  const own = new TypeError('a defect of ours');
  assert.is(withoutValues(own, driverErrorOf(own)), own);
  assert.is(withoutValues('no error', undefined), 'no error');
});

test('takes no error of a statement for one of the network', () => {
  for (const code of ['', 'ERR_INVALID_ARG_TYPE', '23505', 'ER_DUP_ENTRY', 'SQLITE_CONSTRAINT'])
    assert.is(isNetworkError(code), false);
});

test('an error of opening has a cause only if there is one', () => {
  assert.is(new StoreOpenError('it is away', 'why').cause, 'why');
  assert.is('cause' in new StoreOpenError('it is away'), false);
});

test.run();

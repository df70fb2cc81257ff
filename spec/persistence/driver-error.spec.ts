// The facts of errors, however they are wrapped.

import * as assert from 'uvu/assert';
import { driverErrorOf, withoutValues } from '../../src/persistence/store-errors.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('driver error');

test('reads codes and numbers of every driver', () => {
  const of = (facts: object) => driverErrorOf(Object.assign(new Error('m'), facts));
  assert.equal(of({ code: '57P01' }), { code: '57P01', number: 0, isFatal: false, message: 'm' });
  assert.equal(of({ code: 'ER_DUP_ENTRY', errno: 1062 }), {
    code: 'ER_DUP_ENTRY',
    number: 1062,
    isFatal: false,
    message: 'm',
  });
  assert.equal(of({ code: 'EREQUEST', number: 2627 }), {
    code: 'EREQUEST',
    number: 2627,
    isFatal: false,
    message: 'm',
  });
  assert.equal(of({ errorNum: 1, code: 'ORA-00001' }), {
    code: 'ORA-00001',
    number: 1,
    isFatal: false,
    message: 'm',
  });
  // libuv's, which says what the code says.
  assert.equal(of({ code: 'ECONNREFUSED', errno: -111 }), {
    code: 'ECONNREFUSED',
    number: 0,
    isFatal: false,
    message: 'm',
  });
});

test('reads of pg and mysql2 whether the connection is lost with it', () => {
  const of = (facts: object) => driverErrorOf(Object.assign(new Error('m'), facts))?.isFatal;
  assert.equal(
    [
      of({ code: '55000', severity: 'FATAL' }),
      of({ code: 'X', severity: 'PANIC' }),
      of({ errno: 4151, fatal: true }),
    ],
    [true, true, true],
  );
  assert.equal(
    [of({ code: '55000', severity: 'ERROR' }), of({ errno: 1062, fatal: false }), of({ errno: 1062 })],
    [false, false, false],
  );
  assert.is(of({ code: '23514', severity: 'ERROR', sqlState: undefined }), false);
  const sqlState = 'HY000';
  assert.equal(
    [of({ errno: 4151, sqlState, sql: undefined }), of({ errno: 1062, sqlState, sql: 'insert' })],
    [true, false],
  );
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

test.run();

import * as assert from 'uvu/assert';
import { readExpiry } from '../../../src/cli/accounts/account-options.ts';
import { UsageError } from '../../../src/cli/failures.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('expiry');
const nowMs = Date.parse('2027-01-01T00:00:00Z');

test('is a span from now or a time, in UTC', () => {
  const read = [
    '12h',
    '30d',
    '8w',
    '2027-01-31',
    '2028-02-29',
    '2027-01-31T12:00:00Z',
    '2027-01-31T12:00:00+02:00',
    '2027-01-31T12:00Z',
  ];
  assert.equal(
    read.map((written) => readExpiry(written, nowMs)),
    [
      '2027-01-01T12:00:00.000Z',
      '2027-01-31T00:00:00.000Z',
      '2027-02-26T00:00:00.000Z',
      '2027-01-31T00:00:00.000Z',
      '2028-02-29T00:00:00.000Z',
      '2027-01-31T12:00:00.000Z',
      '2027-01-31T10:00:00.000Z',
      '2027-01-31T12:00:00.000Z',
    ],
  );
});

test('refuses what could mean several times, or none', () => {
  for (const written of [
    '',
    'x',
    '30',
    '30m',
    '2027-1-31',
    '2027-01-31Z',
    '2027-01-31T12:00:00',
    '2027-02-29',
    '2027-02-30T00:00:00Z',
    '2027-13-01',
    '2027-01-00',
    '1d2h',
    '-1d',
    '2027-13-01T00:00:00Z',
  ]) {
    assert.throws(() => readExpiry(written, nowMs), refusal(/^--expires takes a time such as/), written);
  }
});

test('refuses the past', () => {
  for (const written of ['0h', '2026-12-31', '2027-01-01', '2026-12-31T23:59:59Z', '2027-01-01T00:00:00Z']) {
    assert.throws(() => readExpiry(written, nowMs), refusal(/^--expires must be in the future/), written);
  }
});

test.run();

function refusal(message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof UsageError && message.test(error.message);
}

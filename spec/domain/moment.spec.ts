import * as assert from 'uvu/assert';
import { timestampOf } from '../../src/domain/text.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('moments');

test('are read with Z or an offset, to the minute or finer', () => {
  const table: [text: string, at: string][] = [
    ['2030-01-31T12:00:00Z', '2030-01-31T12:00:00.000Z'],
    ['2030-01-31t12:00z', '2030-01-31T12:00:00.000Z'],
    ['2030-01-31 12:00:00.25+01:00', '2030-01-31T11:00:00.250Z'],
    ['2030-01-31T23:30:00-0130', '2030-02-01T01:00:00.000Z'],
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
    ['2030-01-31T12:00:00.123456789Z', '2030-01-31T12:00:00.123Z'],
  ];
  for (const [text, at] of table) assert.is(new Date(timestampOf(text)).toISOString(), at, text);
});

test('are not what leaves the place or the time open, nor days and times that do not exist', () => {
  for (const text of [
    ...['', 'tomorrow', '2030-01-31', '2030-01-31T12:00:00', '1900000000', '2030-1-31T12:00:00Z'],
    ...['2027-02-30T00:00:00Z', '2027-02-29T00:00:00Z', '2027-13-01T00:00:00Z', '2027-00-10T00:00:00Z'],
    ...['2027-01-31T25:00:00Z', '2027-01-31T12:60:00Z', '2027-01-31T12:00:00+99:00', ' 2027-01-31T12:00:00Z'],
  ])
    assert.ok(Number.isNaN(timestampOf(text)), text);
});

test.run();

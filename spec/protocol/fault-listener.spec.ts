import * as assert from 'uvu/assert';
import { guarded } from '../../src/protocol/endpoint-types.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('fault listener');

test('hears of what is told', () => {
  const heard: unknown[] = [];
  const fault = new Error('a fault');
  guarded((error) => heard.push(error))(fault);
  assert.equal(heard, [fault]);
});

test('may fail, or be nobody', () => {
  guarded(() => {
    throw new Error('the log is full');
  })(new Error('a fault'));
  guarded()(new Error('a fault'));
});

test.run();

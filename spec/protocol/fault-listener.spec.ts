import * as assert from 'uvu/assert';
import { nonThrowing } from '../../src/protocol/endpoint-types.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('fault listener');

test('hears of what is told', () => {
  const heard: unknown[] = [];
  const fault = new Error('a fault');
  nonThrowing((error) => heard.push(error))(fault);
  assert.equal(heard, [fault]);
});

test('may fail, or be nobody', () => {
  nonThrowing(() => {
    throw new Error('the log is full');
  })(new Error('a fault'));
  nonThrowing()(new Error('a fault'));
});

test.run();

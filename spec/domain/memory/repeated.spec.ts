import * as assert from 'uvu/assert';
import { Repeated } from '../../../src/domain/memory/repeated.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('repeated texts');

test('what is made of a text is made once while its sender repeats it, and for each sender', () => {
  const made: string[] = [];
  const repeated = new Repeated((text) => {
    made.push(text);
    return text.toUpperCase();
  });
  const [one, other] = [{}, {}];
  assert.equal([repeated.of(one, 'a'), repeated.of(one, 'a'), repeated.of(other, 'a')], ['A', 'A', 'A']);
  assert.equal(made, ['a', 'a']);
  assert.equal([repeated.of(one, 'b'), repeated.of(one, 'a'), repeated.of(other, 'a')], ['B', 'A', 'A']);
  assert.equal(made, ['a', 'a', 'b', 'a']);
});

test.run();

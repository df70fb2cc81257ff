import * as assert from 'uvu/assert';
import { instanceShape } from '../../src/domain/instance-shape.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('shape of an instance');

test('is that of its schema', () => {
  assert.is(instanceShape.accepts({ id: 'a', endpoint: 'http://127.0.0.1' }), true);
  assert.equal(instanceShape.issues({ weight: 0 }), [
    {
      loc: ['body', 'weight'],
      msg: 'Input should be greater than or equal to 1',
      type: 'greater_than_equal',
    },
  ]);
});

test.run();

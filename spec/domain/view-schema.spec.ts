// The written form of a view: what is refused, with the place of the fault.

import * as assert from 'uvu/assert';
import { viewIssues } from '../../src/domain/views/view-schema.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('view schema');

test('the value of each tool is checked, whatever is in its name', () => {
  for (const name of ['echo', 'a\nb', 'a\u2028b']) {
    for (const field of ['rename', 'describe', 'annotate', 'defaults']) {
      const from = [{ template: 't', [field]: { [name]: null } }];
      assert.ok(viewIssues({ id: 'v', from }).length > 0, `${field} ${JSON.stringify(name)}`);
    }
    assert.ok(viewIssues({ id: 'v', from: [{ template: 't' }], limits: { [name]: 7 } }).length > 0);
  }
});

test.run();

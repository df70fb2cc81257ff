// The metrics of several workers as one text.

import * as assert from 'uvu/assert';
import { joinedMetrics } from '../../src/metrics/joined-text.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('joined metrics');

test('the lines of a metric stand together below one heading, in the order of the first text', () => {
  const of = (worker: number, more = '') =>
    `# HELP one First.\n# TYPE one gauge\none{worker="${worker}"} 1\n# HELP none Empty.\n# TYPE none gauge\n\n# HELP two Has # HELP in it.\n# TYPE two counter\ntwo{worker="${worker}",a="x"} 1\ntwo{worker="${worker}",a="y"} 2\n${more}`;
  const last = '# HELP three Of one worker.\n# TYPE three gauge\nthree 3\n';
  assert.is(
    joinedMetrics([of(1), of(2, last)]),
    [
      ...['# HELP one First.', '# TYPE one gauge', 'one{worker="1"} 1', 'one{worker="2"} 1', ''],
      ...['# HELP none Empty.', '# TYPE none gauge', ''],
      ...['# HELP two Has # HELP in it.', '# TYPE two counter'],
      ...['two{worker="1",a="x"} 1', 'two{worker="1",a="y"} 2'],
      ...['two{worker="2",a="x"} 1', 'two{worker="2",a="y"} 2', ''],
      ...['# HELP three Of one worker.', '# TYPE three gauge', 'three 3', ''],
    ].join('\n'),
  );
  assert.is(joinedMetrics([]), '');
});

test.run();

import * as assert from 'uvu/assert';
import { viewOf, viewsOf } from '../../src/actors/member-views.ts';
import { answers, fails, Harness } from '../helpers/failing-backend.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('views of members');
let harness = new Harness();
test.before.each(() => {
  harness = new Harness();
});
test.after.each(() => harness.close());

test('score an instance against the best of its pool', async () => {
  const members = [await harness.add('a', answers()), await harness.add('b', fails('yes'))];
  await harness.call('write').end;
  await harness.call('write').end;
  const views = viewsOf(members, harness.fleet.group('t'));
  assert.equal(
    views.map(({ definition: { id }, snapshot: { score } }) => [id, score]),
    [
      ['a', 100],
      ['b', 80],
    ],
  );
  assert.equal(
    members.map((member) => viewOf(member, harness.fleet.group('t'))),
    views,
  );
});

test.run();

// Which life serves a stored session, case by case.

import * as assert from 'uvu/assert';
import { RELEASED } from '../../../src/domain/nodes/life.ts';
import { decideSession, type SessionReader } from '../../../src/domain/sessions/session-holder.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('which life serves a stored session');

const lifeOf: SessionReader['lifeOf'] = (life) => {
  if (life === 'life-b') return { end: undefined };
  if (life === 'life-d') return { end: { cause: 'refused', frees: 'sessions' } };
  return life === 'life-f' ? 'foreign' : undefined;
};
const CLAIM = { do: 'claim' };
const UNKNOWN = { do: 'end', reason: 'unknown life' };

for (const [name, node, life, decision] of [
  ['it is ours, because the answer to a claim was lost', 'a', 'life-a', { do: 'recover' }],
  ['its holder lives', 'b', 'life-b', { do: 'forward', life: 'life-b' }],
  ['the life of its holder has ended', 'd', 'life-d', CLAIM],
  ['its holder released it', 'b', RELEASED, CLAIM],
  ['the life is unknown', 'b', 'life-x', UNKNOWN],
  ['the life is unknown, and was one of this node', 'a', 'life-x', CLAIM],
  ['the life is unknown, and was one of a worker of this node', 'a/2', 'life-x', CLAIM],
  ['the node of the life is no member', 'a', 'life-f', UNKNOWN],
] as const)
  test(`a request of a session: ${name}`, () => {
    assert.equal(decideSession({ node, life }, { node: 'a', life: 'life-a', lifeOf }), decision);
  });

test('a worker serves the sessions of its gateway, and none of another worker', () => {
  const decided = (node: string) =>
    decideSession({ node, life: 'life-x' }, { node: 'a/1', life: 'life-a', lifeOf }).do;
  assert.equal([decided('a'), decided('a/2')], ['claim', 'end']);
});

test('a node without others serves its own sessions and those of its workers, and nothing is to be waited for', () => {
  const decided = (node: string) => decideSession({ node, life: 'life-x' }, { node: 'a', life: 'life-a' });
  assert.equal([decided('a'), decided('a/2'), decided('b')], [CLAIM, CLAIM, { do: 'end' }]);
});

test.run();

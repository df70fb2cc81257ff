// The index of the registered instances.

import * as assert from 'uvu/assert';
import { ForeignInstance } from '../../src/actors/foreign-instance.ts';
import { InstanceIndex } from '../../src/actors/instance-index.ts';
import type { InstanceDefinition } from '../../src/domain/instance.ts';
import { definition } from '../helpers/failing-backend.ts';
import { codeOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('roster');
const member = (id: string, fields: Partial<InstanceDefinition> = {}) =>
  new ForeignInstance(definition(id, fields));

function opened(): InstanceIndex {
  const index = new InstanceIndex();
  index.open('t');
  index.open('s');
  return index;
}

test('keeps the order of registration, and finds by id and by server id', () => {
  const index = opened();
  const [b, a, other] = [member('b'), member('a'), member('a', { template: 's', serverId: 's.a' })];
  for (const one of [b, a, other]) index.put(one);
  assert.equal([index.members('t'), index.members('s')], [[b, a], [other]]);
  assert.equal([index.get('t', 'a'), index.find('s', 'a'), index.byServerId('s.a')], [a, other, other]);
  assert.equal([index.isServerIdTaken('a'), index.isServerIdTaken('s.b')], [true, false]);
  index.drop(a);
  assert.equal(
    [index.members('t'), index.find('t', 'a'), index.isServerIdTaken('a')],
    [[b], undefined, false],
  );
});

test('does not lose a server id that has gone to another', () => {
  const index = opened();
  const [before, other] = [member('a'), member('b')];
  const after = member('a', { serverId: 'b' });
  index.put(before);
  index.put(other);
  index.drop(before);
  index.put(after);
  index.drop(other);
  assert.is(index.byServerId('b'), after);
});

test('says what it does not know', async () => {
  const index = opened();
  assert.is(await codeOf(() => index.get('t', 'a')), 'SERVER_NOT_FOUND');
  assert.is(await codeOf(() => index.byServerId('constructor')), 'SERVER_NOT_FOUND');
  assert.is(await codeOf(() => index.get('x', 'a')), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(() => index.members('x')), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(() => index.put(member('a', { template: 'x' }))), 'TEMPLATE_NOT_FOUND');
  assert.is(index.find('x', 'a'), undefined);
});

test.run();

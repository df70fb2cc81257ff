// Who is registered.

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
  const roster = new InstanceIndex();
  roster.open('t');
  roster.open('s');
  return roster;
}

test('keeps the order of registration, and finds by id and by server id', () => {
  const roster = opened();
  const [b, a, other] = [member('b'), member('a'), member('a', { template: 's', serverId: 's.a' })];
  for (const one of [b, a, other]) roster.put(one);
  assert.equal([roster.members('t'), roster.members('s')], [[b, a], [other]]);
  assert.equal([roster.get('t', 'a'), roster.find('s', 'a'), roster.byServerId('s.a')], [a, other, other]);
  assert.equal([roster.isServerIdTaken('a'), roster.isServerIdTaken('s.b')], [true, false]);
  roster.drop(a);
  assert.equal(
    [roster.members('t'), roster.find('t', 'a'), roster.isServerIdTaken('a')],
    [[b], undefined, false],
  );
});

test('does not lose a server id that has gone to another', () => {
  const roster = opened();
  const [before, other] = [member('a'), member('b')];
  const after = member('a', { serverId: 'b' });
  roster.put(before);
  roster.put(other);
  roster.drop(before);
  roster.put(after);
  roster.drop(other);
  assert.is(roster.byServerId('b'), after);
});

test('says what it does not know', async () => {
  const roster = opened();
  assert.is(await codeOf(() => roster.get('t', 'a')), 'SERVER_NOT_FOUND');
  assert.is(await codeOf(() => roster.byServerId('constructor')), 'SERVER_NOT_FOUND');
  assert.is(await codeOf(() => roster.get('x', 'a')), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(() => roster.members('x')), 'TEMPLATE_NOT_FOUND');
  assert.is(await codeOf(() => roster.put(member('a', { template: 'x' }))), 'TEMPLATE_NOT_FOUND');
  assert.is(roster.find('x', 'a'), undefined);
});

test.run();

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

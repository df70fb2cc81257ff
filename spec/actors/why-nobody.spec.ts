import * as assert from 'uvu/assert';
import { mayComeBack, whyNobody } from '../../src/actors/why-nobody.ts';
import type { InstanceState } from '../../src/domain/instance.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('why nobody');

const instance = (id: string, state: InstanceState, reason: string | null = null) => ({ id, state, reason });

test('gives the reason of an unhealthy or stopped instance, and the state of the others', () => {
  const instances = [
    instance('a', 'starting', 'connection refused'),
    instance('b', 'unhealthy', 'connection refused'),
    instance('c', 'unhealthy'),
  ];
  assert.is(whyNobody(instances), 'a is starting; b: connection refused; c is unhealthy');
  const stopped = [instance('a', 'stopped', 'it runs on the node "b"'), instance('b', 'stopped')];
  assert.is(whyNobody(stopped), 'a: it runs on the node "b"; b is stopped');
});

test('names three, and how many there are more', () => {
  const instances = ['a', 'b', 'c', 'd', 'e'].map((id) => instance(id, 'draining'));
  assert.is(whyNobody(instances), 'a is draining; b is draining; c is draining; and 2 more');
});

test('says that there are none, and nothing of healthy ones', () => {
  assert.is(whyNobody([]), 'none is registered');
  assert.is(whyNobody([instance('a', 'healthy')]), '');
});

test('expects only those back that start or are unhealthy', () => {
  const states: readonly InstanceState[] = ['starting', 'healthy', 'unhealthy', 'draining', 'stopped'];
  assert.equal(
    states.filter((state) => mayComeBack({ state })),
    ['starting', 'unhealthy'],
  );
});

test.run();

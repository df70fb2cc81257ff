// The error of a call for which no instance is left.

import * as assert from 'uvu/assert';
import { noHealthyError, noInstanceError } from '../../../src/actors/fleet/no-instance.ts';
import { TemplateGroup } from '../../../src/actors/fleet/template-group.ts';
import { DEFAULT_POLICY } from '../../../src/balancing/policy.ts';
import type { InstanceState } from '../../../src/domain/instances/instance.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { suite } from '../../helpers/suite.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';

const test = suite('the error without an instance');
const DEPS = {
  ...{ random: Math.random, emit: () => {}, clock: systemClock },
  ...{ scheduler: untimedScheduler(), trustOf: () => undefined },
};
const NO_INSTANCE = 'No instance of "t" is healthy right now';
const instance = (id: string, state: InstanceState, reason: string | null = null) => ({ id, state, reason });
const clauses = (instances: readonly object[]) => noHealthyError(groupOf(instances)).message;

test('the error gives the reason of unhealthy and stopped instances, and the state of others', () => {
  const instances = [
    instance('a', 'starting', 'connection refused'),
    instance('b', 'unhealthy', 'connection refused'),
    instance('c', 'unhealthy'),
  ];
  assert.is(clauses(instances), `${NO_INSTANCE}: a is starting; b: connection refused; c is unhealthy.`);
  const stopped = [instance('a', 'stopped', 'it runs on the node "b"'), instance('b', 'stopped')];
  assert.is(clauses(stopped), `${NO_INSTANCE}: a: it runs on the node "b"; b is stopped.`);
});

test('the error names three instances, and the number of the others', () => {
  const instances = ['a', 'b', 'c', 'd', 'e'].map((id) => instance(id, 'draining'));
  assert.is(clauses(instances), `${NO_INSTANCE}: a is draining; b is draining; c is draining; and 2 more.`);
});

test('a tool may exist while an untried instance may return, unless only one instance may answer', () => {
  const codeFor = (state: InstanceState, excluded: readonly string[], isOnly = false): string => {
    const member = Object(instance('a', state));
    const only = isOnly ? member : undefined;
    return noInstanceError(groupOf([member]), { lacking: 'x', excluded: new Set(excluded), only }).code;
  };
  const states: readonly InstanceState[] = ['starting', 'healthy', 'unhealthy', 'draining', 'stopped'];
  assert.equal(
    states.map((state) => codeFor(state, ['b'])),
    ['NO_HEALTHY_INSTANCE', 'TOOL_NOT_FOUND', 'NO_HEALTHY_INSTANCE', ...['TOOL_NOT_FOUND', 'TOOL_NOT_FOUND']],
  );
  assert.equal(
    [codeFor('unhealthy', ['a']), codeFor('unhealthy', [], true)],
    ['TOOL_NOT_FOUND', 'TOOL_NOT_FOUND'],
  );
});

test.run();

function groupOf(instances: readonly object[]): TemplateGroup {
  const group = new TemplateGroup('t', DEFAULT_POLICY, DEPS);
  for (const [index, member] of instances.entries()) group.byId.set(`${index}`, Object(member));
  return group;
}

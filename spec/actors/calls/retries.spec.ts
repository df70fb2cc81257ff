// Whether a failed call may be repeated, within which budget, and the error when no instance is left.

import * as assert from 'uvu/assert';
import { RetryBudget } from '../../../src/actors/calls/retry-budget.ts';
import { noHealthyError, noInstanceError } from '../../../src/actors/no-instance.ts';
import { TemplateGroup } from '../../../src/actors/template-group.ts';
import { DEFAULT_POLICY } from '../../../src/balancing/policy.ts';
import { isRepeatable } from '../../../src/domain/calls/retry-rules.ts';
import type { InstanceState } from '../../../src/domain/instances/instance.ts';
import { toolCall } from '../../helpers/backends/profiles.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('retry');
const KNOWS_READ = { tools: { isRepeatable: (tool: string) => tool === 'read' } };
const NO_INSTANCE = 'No instance of "t" is healthy right now';
const instance = (id: string, state: InstanceState, reason: string | null = null) => ({ id, state, reason });
const clauses = (instances: readonly object[]) => noHealthyError(groupOf(instances)).message;

test('the budget forgets calls and repeats after 10 s', () => {
  let nowMs = 500;
  const budget = new RetryBudget(() => nowMs);
  call(budget, 100);
  assert.is(repeats(budget), 30);
  nowMs = 9_999;
  assert.is(repeats(budget), 0);
  nowMs = 10_000;
  assert.is(repeats(budget), 10);
});

test('a call of an unknown tool, or without a tool name, is not repeatable', () => {
  assert.is(isRepeatable(toolCall('read'), { tools: undefined }), false);
  assert.is(isRepeatable({ method: 'tools/call', params: { name: ['read'] } }, KNOWS_READ), false);
});

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
  const codeFor = (state: InstanceState, excluded: readonly string[], isBound = false): string => {
    const member = Object(instance('a', state));
    const bound = isBound ? member : undefined;
    return noInstanceError(groupOf([member]), { lacking: 'x', excluded: new Set(excluded), bound }).code;
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

function call(budget: RetryBudget, times: number): void {
  for (let time = 0; time < times; time += 1) budget.countCall();
}

/** Repeats until the budget says no. */
function repeats(budget: RetryBudget): number {
  for (let count = 0; count < 10_000; count += 1) if (!budget.take()) return count;
  throw new Error('the budget has no end');
}

function groupOf(instances: readonly object[]): TemplateGroup {
  const group = new TemplateGroup('t', DEFAULT_POLICY, Object({}));
  for (const [index, member] of instances.entries()) group.byId.set(`${index}`, Object(member));
  return group;
}

// The conformance tests for the approved definitions of tools in a Store.

import * as assert from 'uvu/assert';
import type { Approval, NewApproval } from '../../src/domain/views/approval.ts';
import type { Store } from '../../src/persistence/store.ts';
import type { Suite } from '../helpers/suite.ts';
import { declaring, HOSTILE_TEXTS } from './store.ts';

function approvalOf(scope: string, tool: string, ...digests: string[]): NewApproval {
  return { scope, tool, digests, definition: { name: tool, description: HOSTILE_TEXTS.join() } };
}

const sorted = (approvals: readonly Approval[]) =>
  approvals
    .map(({ scope, tool, digests }) => ({ scope, tool, digests }))
    .toSorted((a, b) => `${a.scope} ${a.tool}`.localeCompare(`${b.scope} ${b.tool}`));

/** Declares the tests in `test`. `open` gives an empty store each time; the test closes it. */
export function approvalConformance(test: Suite, open: () => Promise<Store>): void {
  const declare = declaring(test, open, 'approvals: ');

  declare('an approval adds to those of the same tool, and is a change of the registry', async (store) => {
    const { approvals } = store;
    const before = await store.revision();
    const one = approvalOf('t', 'a', '1');
    const hostile = approvalOf('t', HOSTILE_TEXTS.join(), '1');
    const revision = await approvals.save([one, approvalOf('u', 'a', '1'), hostile]);
    assert.ok(revision > before);
    assert.is(await store.revision(), revision);
    assert.equal((await approvals.definitionsOf('t')).get(hostile.tool), hostile.definition);
    assert.is((await approvals.definitionsOf('T')).size, 0);
    const again = { ...approvalOf('t', 'a', '2'), definition: { name: 'a' } };
    await approvals.save([again]);
    const both = approvalOf('t', 'a', '1', '2');
    assert.equal(sorted(await approvals.list()), sorted([both, hostile, approvalOf('u', 'a', '1')]));
    assert.equal((await approvals.definitionsOf('t')).get('a'), again.definition);
  });

  declare('of more than eight approved definitions the oldest make room', async (store) => {
    const { approvals } = store;
    await approvals.save([approvalOf('t', 'a', '1', '2', '3', '4', '5', '6', '7', '8')]);
    await approvals.save([approvalOf('t', 'a', '8', '9')]);
    const kept = approvalOf('t', 'a', '2', '3', '4', '5', '6', '7', '8', '9');
    assert.equal(sorted(await approvals.list()), sorted([kept]));
  });

  declare('what several nodes approve of one tool at once is kept', async (store) => {
    const { approvals } = store;
    const digests = ['1', '2', '3', '4', '5', '6'];
    await Promise.all(digests.map((digest) => approvals.save([approvalOf('t', 'a', digest)])));
    const [approval] = await approvals.list();
    assert.equal(approval?.digests.toSorted(), digests);
  });

  declare('those of a template are deleted together', async (store) => {
    const { approvals } = store;
    await approvals.save([approvalOf('t', 'a', '1'), approvalOf('t', 'A', '1'), approvalOf('T', 'a', '1')]);
    const revision = await store.revision();
    assert.ok(Number(await approvals.deleteOf('t')) > revision);
    assert.is(await approvals.deleteOf('t'), undefined);
    assert.equal(sorted(await approvals.list()), sorted([approvalOf('T', 'a', '1')]));
  });
}

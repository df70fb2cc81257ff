// Lists by which calls that were right are wrong, and of which nobody said that they changed.

import * as assert from 'uvu/assert';
import { ToolCache } from '../../../src/actors/instances/tool-cache.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Tool } from '../../../src/domain/mcp.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('tool cache, changes');

test('tells that a tool asks for other headers, unless its backend said that the list changed', async () => {
  const asking = (header: string): Tool => ({
    name: 'a',
    inputSchema: { properties: { x: { type: 'string', 'x-mcp-header': header } } },
  });
  let lists: readonly Tool[] = [asking('Old')];
  let nowMs = 0;
  let changes = 0;
  const cache = new ToolCache(
    async () => lists,
    () => nowMs,
    () => {
      changes += 1;
    },
  );
  const changesAfter = async (listed: readonly Tool[], list: () => Promise<void> = () => cache.refresh()) => {
    lists = listed;
    await list();
    return changes;
  };
  assert.is(await changesAfter(lists), 0, 'the first list');
  assert.is(await changesAfter([{ ...asking('Old'), description: 'new' }, { name: 'b' }]), 0);
  assert.is(await changesAfter([{ name: 'b' }]), 0, 'a tool that is gone is not listed wrongly');
  assert.is(await changesAfter([asking('New'), { name: 'b' }]), 0, 'nor is one that came');
  assert.is(await changesAfter([asking('Old'), { name: 'b' }]), 1);
  nowMs = LIMITS.toolListAgeMs;
  assert.is(await changesAfter([asking('New')], () => cache.drop()), 1, 'that was said');
  assert.equal(cache.find('a'), asking('New'));
});

test.run();

// Long lists of pinned templates and views: what is digested, matched and noted of them is spread over several turns.

import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { CompiledView } from '../../src/protocol/aggregate/views/view-choices.ts';
import { suite } from '../helpers/suite.ts';
import { turnsOf } from '../helpers/turns.ts';

const test = suite('turns of pinned lists', { timeoutMs: 60_000 });

const TOOLS = 3_000;
const NAME = 'tool_'.padEnd(60, 'x');
/** At most 25 tools are digested in a turn. */
const TURNS = TOOLS / 25;
/** More than the tasks of one turn match: 25 of 1,024 characters. */
const MOST_AT_ONCE = 500;

let gateway: Gateway;
test.before(async () => {
  gateway = await createGateway({ store: new MemoryStore() });
  const tools: { name: string; inputSchema: object }[] = [{ name: 'first', inputSchema: { type: 'object' } }];
  const handler = ({ method }: { method: string }) => (method === 'tools/list' ? { tools } : {});
  await gateway.register('a', { id: 'one', handler }, { waitMs: 5_000 });
  await gateway.views.put({ id: 'v', from: [{ template: 'a', tools: ['*t*'] }], approve: 'pinned' });
  for (let index = 0; index < TOOLS; index += 1)
    tools.push({ name: `${NAME}${1_000 + index}`, inputSchema: { type: 'object' } });
});
test.after(() => gateway.close({ graceMs: 0 }));

const { takes } = CompiledView.prototype;
test.after.each(() => {
  CompiledView.prototype.takes = takes;
});

/** Counts the turns of the event loop, and the most names that are matched without anything in between. */
async function watched(run: () => Promise<unknown>) {
  let [atOnce, mostAtOnce] = [0, 0];
  CompiledView.prototype.takes = function (...call) {
    if (atOnce === 0)
      process.nextTick(() => {
        atOnce = 0;
      });
    atOnce += 1;
    mostAtOnce = Math.max(mostAtOnce, atOnce);
    return takes.apply(this, call);
  };
  const turns = await turnsOf(run);
  return { turns, mostAtOnce };
}

for (const [name, run, leastTurns] of [
  ['a list of its template', () => gateway.list('a', 'tools'), TURNS],
  ['the state of its tools', () => gateway.views.tools('v'), 1],
  ['an approval', () => gateway.views.approve('v'), 1],
] as const) {
  test(`a pinned view with many tools: ${name}`, async () => {
    const { turns, mostAtOnce } = await watched(run);
    assert.ok(turns >= leastTurns, `${turns} turns`);
    assert.ok(mostAtOnce > 0 && mostAtOnce <= MOST_AT_ONCE, `${mostAtOnce} at once`);
  });
}

test.run();

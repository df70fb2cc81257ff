// Long lists of pinned templates and views: what is digested, matched and noted of them is spread over several turns.

import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import type { Tool } from '../../../src/domain/mcp/mcp.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { CompiledView } from '../../../src/protocol/aggregate/views/compiled-view.ts';
import { errorOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { turnsOf } from '../../helpers/time/turns.ts';

const test = suite('turns of pinned lists', { timeoutMs: 60_000 });

const TOOLS = 3_000;
const NAME = 'tool_'.padEnd(60, 'x');
/** At most 25 tools are digested in a turn. */
const TURNS = TOOLS / 25;
/** More than the tasks of one turn match: 25 of 1,024 characters. */
const MAX_AT_ONCE = 500;

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
    assert.ok(mostAtOnce > 0 && mostAtOnce <= MAX_AT_ONCE, `${mostAtOnce} at once`);
  });
}

test('a list of a pinned template is parsed item by item, in tasks of at most 100,000 values', async () => {
  const more = Array(60_000).fill(0);
  let tools: object[] = ['a', 'b', 'c'].map((name) => ({ name, inputSchema: { type: 'object' }, more }));
  const handler = ({ method }: { method: string }) => (method === 'tools/list' ? { tools } : {});
  await gateway.register('wide', { id: 'one', handler }, { waitMs: 5_000 });
  await gateway.changeTemplate('wide', { approve: 'pinned' });
  const list = () => firstValueFrom(gateway.exchange('wide', { method: 'tools/list' }));
  const namesIn = async () => {
    const { event } = await list();
    return event.kind === 'result' && Object(event.result.value).tools.map(({ name }: Tool) => name);
  };
  assert.equal(await namesIn(), ['a', 'b', 'c']);
  tools = [...tools.slice(1), { name: 'new', inputSchema: { type: 'object' } }, null as never];
  assert.equal(
    Object((await list()).event).result.value.tools.length,
    3,
    'without the one that is not approved',
  );
  tools = [{ name: 'a', inputSchema: { type: 'object' }, more: [...more, ...more] }];
  assert.match((await errorOf(list())).message, '100000 values');
});

test.run();

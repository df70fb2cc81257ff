// What a view costs, inside one process: CPU time of a call through a view beyond that of a call to its template, of `tools/list`, and the
// memory of a listed tool. Run with `npm run views`; exit code 1 beyond a bar. The sockets are left out, which are the same for both.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { filter, firstValueFrom } from 'rxjs';
import { isSourcedAnswer } from '../src/domain/calls/exchange.ts';
import { createGateway } from '../src/gateway/gateway.ts';
import { median } from './statistics.ts';
import { answerHelp } from './usage.ts';

answerHelp('npm run views, without options: what a view costs. Exits with 1 when a bar is missed.\n');

const TOOLS = 500;
const CALLS = 4_000;
const LISTS = 300;
const ROUNDS = 15;
/** Rounds until the code is compiled. */
const WARM_UP = 4;
const VIEWS = 20;

const tools = Array.from({ length: TOOLS }, (_, index) => ({
  name: `tool_${index}`,
  description: 'Does something. '.repeat(20),
  inputSchema: {
    type: 'object',
    properties: { text: { type: 'string', description: 'A text. '.repeat(10) } },
  },
}));
const result = { content: [{ type: 'text', text: 'done' }] };

await using gateway = await createGateway({ graceMs: 0 });
const handler = ({ method }: { readonly method: string }) => (method === 'tools/list' ? { tools } : result);
await gateway.register('t', { id: 'one', handler }, { waitMs: 10_000 });
await gateway.views.put({ id: 'plain', from: [{ template: 't' }] });
const changes = { rename: { tool_1: 'renamed' }, annotate: { renamed: { readOnlyHint: true } } };
const limits = { renamed: { timeout: 60, calls_per_minute: 1_000_000 } };
await gateway.views.put({ id: 'changed', from: [{ template: 't', ...changes }], limits });

await gateway.views.put({ id: 'pinned', approve: 'pinned', from: [{ template: 't' }] });
// Only tool_2 is confirmed: a call of another tool costs the look-up.
await gateway.views.put({ id: 'confirming', confirm: ['tool_2'], from: [{ template: 't' }] });

const call = (template: string, name: string) =>
  answered(template, 'tools/call', { name, arguments: { text: 'a' } });
const differences = {
  plain: [] as number[],
  changed: [] as number[],
  pinned: [] as number[],
  confirming: [] as number[],
};
const lists: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const direct = await cpuOf(CALLS, () => call('t', 'tool_1'));
  const plain = await cpuOf(CALLS, () => call('plain', 'tool_1'));
  const changed = await cpuOf(CALLS, () => call('changed', 'renamed'));
  const pinned = await cpuOf(CALLS, () => call('pinned', 'tool_1'));
  const confirming = await cpuOf(CALLS, () => call('confirming', 'tool_1'));
  const list = await cpuOf(LISTS, () => answered('plain', 'tools/list', {}));
  if (round < WARM_UP) continue;
  differences.plain.push(plain - direct);
  differences.changed.push(changed - direct);
  differences.pinned.push(pinned - direct);
  differences.confirming.push(confirming - direct);
  lists.push(list);
}

const collect = collector();
const before = heapAfter(collect);
for (let index = 0; index < VIEWS; index += 1) {
  await gateway.views.put({ id: `view-${index}`, from: [{ template: 't' }] });
  await gateway.list(`view-${index}`, 'tools');
}
const bytes = (heapAfter(collect) - before) / VIEWS / TOOLS;

const figures = [
  {
    name: 'a call through a view, more than through its template',
    value: median(differences.plain),
    bar: 2,
    unit: 'us',
  },
  {
    name: 'the same with a new name, hints and limits',
    value: median(differences.changed),
    bar: 2,
    unit: 'us',
  },
  { name: 'a call through a pinned view', value: median(differences.pinned), bar: 2, unit: 'us' },
  {
    name: 'a call through a view that confirms other tools',
    value: median(differences.confirming),
    bar: 2,
    unit: 'us',
  },
  { name: `tools/list of a view with ${TOOLS} tools`, value: median(lists), bar: 1_000, unit: 'us' },
  { name: 'heap of one view for each tool that it lists', value: bytes, bar: 3_000, unit: 'bytes' },
];
for (const { name, value, bar, unit } of figures)
  console.log(`${name}: ${value.toFixed(1)} ${unit}, bar ${bar}${value > bar ? ', MISSED' : ''}`);
if (figures.some(({ value, bar }) => value > bar)) process.exitCode = 1;

async function answered(template: string, method: string, params: object): Promise<unknown> {
  const events$ = gateway.exchange(template, { method, params: { ...params } });
  return firstValueFrom(events$.pipe(filter(isSourcedAnswer)));
}

/** Microseconds of each, one after the other. */
async function cpuOf(count: number, run: () => Promise<unknown>): Promise<number> {
  const began = process.cpuUsage();
  for (let index = 0; index < count; index += 1) await run();
  const { user, system } = process.cpuUsage(began);
  return (user + system) / count;
}

function collector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc');
}

function heapAfter(collectGarbage: () => void): number {
  for (let round = 0; round < 4; round += 1) collectGarbage();
  return process.memoryUsage().heapUsed;
}

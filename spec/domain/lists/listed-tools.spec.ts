// What a list of tools has for callers with rights: it is matched in tasks of the scheduler, and once for equal rights.

import { lastValueFrom, of, toArray } from 'rxjs';
import * as assert from 'uvu/assert';
import { withHints } from '../../../src/actors/instances/tool-hints.ts';
import { type ToolTrust, withTrustedTools } from '../../../src/actors/instances/tool-trust.ts';
import { ToolRights } from '../../../src/domain/accounts/rights.ts';
import type { SourcedEvent } from '../../../src/domain/calls/exchange.ts';
import { JsonText } from '../../../src/domain/json/json.ts';
import { ListReader } from '../../../src/domain/lists/list-reader.ts';
import { allowedTools, listedAnswers } from '../../../src/domain/lists/listed-tools.ts';
import { TaskScheduler } from '../../../src/domain/time/task-scheduler.ts';
import { suite } from '../../helpers/suite.ts';
import { schedulerWith } from '../../helpers/time/turns.ts';

const test = suite('listed tools');

const listReader = new ListReader();
const TOOLS = Array.from({ length: 10_000 }, (_, index) => ({ name: `tool_${10_000 + index}` }));
/** Of names of 10 characters, more than a task may match. */
const MAX_IN_TASK = 200;
const EVEN = ['t/*0', 't/*2', 't/*4', 't/*6', 't/*8'];

/** Counts the names that are matched, and those of the largest task. */
class Counted extends ToolRights {
  matched = 0;

  override allow(template: string, tool: string): boolean {
    this.matched += 1;
    return super.allow(template, tool);
  }
}

function watched(rights: Counted) {
  const tasks: number[] = [];
  const scheduler = new TaskScheduler({
    nextTurn: (run) =>
      setImmediate(() => {
        const before = rights.matched;
        run();
        tasks.push(rights.matched - before);
      }),
    perTurn: 1,
  });
  return { scheduler, tasks };
}

/** Each reads the list anew. */
const DOORS: Record<string, (rights: ToolRights, scheduler: TaskScheduler) => Promise<readonly unknown[]>> = {
  'that were read': (rights, scheduler) => allowedTools('t', rights, [...TOOLS], scheduler),
  'of an answer': async (rights, scheduler) => {
    const events$ = listedAnswers('t', { method: 'tools/list', tools: rights }, of(answerOf()), {
      scheduler,
      listReader,
    });
    const [answer, ...others] = await lastValueFrom(events$.pipe(toArray()));
    assert.equal(others, []);
    assert.is(answer?.event.kind, 'result');
    const { tools, ...rest } = Object(answer?.event.kind === 'result' && answer.event.result.value);
    assert.equal(rest, { n: 1.5 });
    return tools;
  },
};
const TEXT = JSON.stringify({ tools: [...TOOLS, {}, 1], n: 1.5 });
function answerOf(): SourcedEvent {
  return { event: { kind: 'result', result: JsonText.ofText(TEXT) }, instanceId: 'one', serverId: 't-one' };
}

for (const [which, list] of Object.entries(DOORS)) {
  test(`tools ${which} are matched in many tasks`, async () => {
    const rights = new Counted([EVEN, ['t/*', '!t/*9', '!t/tool_10000']]);
    const { scheduler, tasks } = watched(rights);
    const allowed = await list(rights, scheduler);
    assert.is(allowed.length, TOOLS.length / 2 - 1);
    assert.equal(allowed[0], { name: 'tool_10002' });
    assert.ok(Math.max(...tasks) <= MAX_IN_TASK, `${Math.max(...tasks)} in one task`);
  });

  test(`tools ${which} are matched once for equal rights, also at the same time, as long as their names are the same`, async () => {
    const [first, second] = [new Counted([['t/*1']]), new Counted([['t/*1']])];
    const scheduler = new TaskScheduler();
    const [one, other] = await Promise.all([list(first, scheduler), list(second, scheduler)]);
    assert.equal(one, other);
    assert.is(one.length, TOOLS.length / 10);
    await list(second, scheduler);
    assert.is(first.matched, TOOLS.length);
    assert.is(second.matched, 0);
  });
}

test('a list is limited however its key is written, and as often as it occurs', async () => {
  const hidden = '[{"name":"secret"}]';
  const rights = new ToolRights([['t/open']]);
  for (const text of [
    `{"to\\u006fls":${hidden}}`,
    `{"tools":[],"\\u0074ools":${hidden}}`,
    `{"tools":${hidden},"tools":[]}`,
  ]) {
    const answer = { ...answerOf(), event: { kind: 'result' as const, result: JsonText.ofText(text) } };
    const request = { method: 'tools/list', tools: rights };
    const deps = { scheduler: new TaskScheduler(), listReader };
    const { event } = await lastValueFrom(listedAnswers('t', request, of(answer), deps));
    assert.not.match(event.kind === 'result' ? event.result.text : 'secret', 'secret', text);
  }
});

test('the tools of an answer that remain keep their bytes, whatever stands before their name', async () => {
  const open =
    '{ "inputSchema":{"name":"secret","x":1.0,"y":12345678901234567890},\n"n\\u0061me":"op\\u0065n"}';
  const text = `{"n":1.0,"tools":[ {"name":"secret"} , ${open},{"name":"open","name":"secret"},[] ],"nextCursor":"x"}`;
  const answer = { ...answerOf(), event: { kind: 'result' as const, result: JsonText.ofText(text) } };
  const request = { method: 'tools/list', tools: new ToolRights([['t/open']]) };
  const deps = { scheduler: new TaskScheduler(), listReader };
  const { event } = await lastValueFrom(listedAnswers('t', request, of(answer), deps));
  assert.is(event.kind === 'result' && event.result.text, `{"n":1.0,"tools":[${open}],"nextCursor":"x"}`);
});

test('tools that were read are the same array for equal rights, and others for other rights', async () => {
  const scheduler = new TaskScheduler();
  const listed = (glob: string) => allowedTools('t', new ToolRights([[glob]]), TOOLS, scheduler);
  assert.is(await listed('t/*3'), await listed('t/*3'));
  assert.equal(await listed('u/*'), []);
  assert.is((await listed('*/*')).length, TOOLS.length);
});

/** Records of each iteration how many tasks it has. */
function counted() {
  const tasks: number[] = [];
  const scheduler = schedulerWith({
    each: async <T>(items: Iterable<T>, visit: (item: T) => unknown) => {
      const all = [...items];
      tasks.push(all.length);
      for (const item of all) visit(item);
    },
    turn: async () => undefined,
  });
  return { tasks, scheduler };
}

test('the names in an answer are read in several tasks, for rights and for annotations', async () => {
  const { tasks, scheduler } = counted();
  const tools = new ToolRights([['t/tool_1000*']]);
  const request = { method: 'tools/list', callerId: 'user:bob', tools };
  const listed = await lastValueFrom(listedAnswers('t', request, of(answerOf()), { scheduler, listReader }));
  const hinted = await withHints(answerOf(), { tool_10000: { readOnlyHint: true } }, scheduler);
  const toolsIn = ({ event }: SourcedEvent) => Object(event.kind === 'result' && event.result.value).tools;
  assert.is(toolsIn(listed).length, 10);
  const [first, ...others] = toolsIn(hinted);
  assert.equal(first, { name: 'tool_10000', annotations: { readOnlyHint: true } });
  assert.equal(others, [...TOOLS.slice(1), {}, 1]);
  const [ofRights = 0, , ofHints = 0] = tasks;
  assert.ok(ofRights > 2 && ofHints > 2, String(tasks));
});

test('the tools of a pinned template are compared and removed in several tasks; the rest keeps its bytes', async () => {
  const { tasks, scheduler } = counted();
  const digests = { own: 'd', shown: 'd' };
  const trust: ToolTrust = {
    isRequiredFor: () => true,
    digestsOf: async (tools) => new Map(tools.map((tool) => [tool, digests])),
    isApproved: (tool) => !tool.endsWith('5'),
    areUsedEverywhere: async () => false,
    listed: async () => undefined,
  };
  const { trusted, definitions } = await withTrustedTools(answerOf(), trust, scheduler);
  const kept = TOOLS.filter(({ name }) => !name.endsWith('5'));
  const text = JSON.stringify({ tools: [...kept, {}, 1], n: 1.5 });
  assert.is(trusted.event.kind === 'result' && trusted.event.result.text, text);
  assert.is(definitions?.size, TOOLS.length);
  const [ofNames = 0, ofItems = 0] = tasks;
  assert.ok(ofNames >= TOOLS.length / MAX_IN_TASK && ofItems > 2, String(tasks));
  const none = await withTrustedTools(answerOf(), { ...trust, isApproved: () => false }, scheduler);
  assert.is(
    none.trusted.event.kind === 'result' && none.trusted.event.result.text,
    '{"tools":[{},1],"n":1.5}',
  );
  const all = answerOf();
  assert.is((await withTrustedTools(all, { ...trust, isApproved: () => true }, scheduler)).trusted, all);
});

test.run();

// All templates as one server, for clients without a session; the same for sessions is in sessions/aggregate-session.spec.ts.

import { mock } from 'node:test';
import { EMPTY, firstValueFrom, of, Subject, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import { noHealthyInstance } from '../../../src/domain/errors/backend-errors.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { Owner } from '../../../src/domain/mcp/client.ts';
import type { ListField } from '../../../src/domain/mcp/mcp.ts';
import type { McpSession } from '../../../src/domain/sessions/mcp-session.ts';
import { GATEWAY_INFO } from '../../../src/domain/version.ts';
import { withListNotices } from '../../../src/protocol/list-notices.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { pass, settled, simulateTime } from '../../helpers/time/simulated-time.ts';
import { passTurns, TurnCounter, untimedScheduler } from '../../helpers/time/turns.ts';
import { ADA, answered, CLOCK, type ListingBackends, PROFILE, shownTool } from '../listing-backends.ts';
import { twoTemplates, untilWanted, wantedUris } from './two-templates.ts';

const test = suite('aggregated backends');
simulateTime(test);

test('many clients that ask for a long list at once get it in several turns', async () => {
  const { a, ask } = twoTemplates();
  const tools = Array.from({ length: 1_000 }, (_, at) => shownTool(`tool-${at}`));
  a.instead = of(answered({ tools }));
  const answers = new TurnCounter();
  const list = async () => {
    assert.is(Object(await ask({ method: 'tools/list' })).said.tools.length, 1_001);
    answers.note();
  };
  await Promise.all(Array.from({ length: 30 }, list));
  assert.is(answers.all, 30);
  assert.ok(answers.fullest <= 5, `${answers.fullest} in one turn`);
});

test('a list says in its metadata which templates are missing or stale', async () => {
  const { a, b, aggregated, ask } = twoTemplates();
  await ask({ method: 'tools/list' });
  const whole = await ask({ method: 'tools/list' });
  assert.equal(Object.keys(Object(whole.said)), ['tools']);
  for (const backends of [a, b]) backends.instead = throwError(() => noHealthyInstance('it'));
  b.handshake = { ...b.handshake, serverInfo: { name: 'another', version: '1' } };
  const listFor = async (protocolVersion: string) => {
    const options = { owner: ADA, profile: { ...PROFILE, protocolVersion } };
    const { event } = await firstValueFrom(aggregated.exchange({ method: 'tools/list' }, options));
    return event.kind === 'result' ? event.result.value : event;
  };
  const _meta = {
    'stagedoor/missing': [{ template: 'b', reason: 'No instance of "it" is healthy right now.' }],
    'stagedoor/stale': [{ template: 'a', age_seconds: 0 }],
  };
  const tools = [shownTool('a__x')];
  assert.equal(await listFor('2025-11-25'), { tools, _meta });
  const serverInfo = { 'io.modelcontextprotocol/serverInfo': GATEWAY_INFO };
  assert.equal(await listFor('2026-07-28'), { tools, _meta: { ...serverInfo, ..._meta } });
});

test('always announces lists, and logging if a template of the caller has it', () => {
  const { aggregated } = twoTemplates();
  const capabilitiesFor = (owner: Owner) =>
    aggregated.handshakes(owner).map(({ capabilities }) => Object.keys(capabilities));
  const lists = ['tools', 'prompts', 'resources'];
  assert.equal(capabilitiesFor(ADA), [[...lists, 'logging']]);
  assert.equal(capabilitiesFor({ id: 'key:1', templates: new Set(['b']) }), [lists]);
  assert.equal(aggregated.handshakes(ADA)[0]?.greeting.serverInfo, GATEWAY_INFO);
});

test('announces tasks, extensions and experimental features, united over the templates of the caller', () => {
  const { a, b, aggregated } = twoTemplates();
  const ui = 'io.modelcontextprotocol/ui';
  const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
  const extensions = { [ui]: { mimeTypes: ['text/html'] }, 'com.example/a': {} };
  a.handshake = {
    ...a.handshake,
    capabilities: { tools: {}, tasks, extensions, experimental: { x: { n: 1 } } },
  };
  const others = { [ui]: { mimeTypes: ['text/html', 'text/x'] }, 'com.example/b': { deep: { y: true } } };
  const experimental = { x: { n: 2, m: 3 } };
  b.handshake = {
    ...b.handshake,
    era: 'modern',
    capabilities: { tasks: { requests: { other: {} } }, extensions: others, experimental },
  };
  const [handshake] = aggregated.handshakes(ADA);
  assert.equal(handshake?.capabilities, {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    tasks: { cancel: {}, requests: { tools: { call: {} } } },
    extensions: {
      [ui]: { mimeTypes: ['text/html', 'text/x'] },
      'com.example/a': {},
      'com.example/b': { deep: { y: true } },
    },
    experimental: { x: { n: 1, m: 3 } },
  });
  assert.equal(handshake?.greeting.capabilities, handshake?.capabilities);
  assert.is(aggregated.handshakes(ADA)[0], handshake, 'sessions share it');
});

test('a session waits for servers that start for the first time, since its client gets no later handshake', async () => {
  const { a, b, aggregated } = twoTemplates();
  const handshake = { ...b.handshake, greeting: { instructions: 'Ask twice.' } };
  const { promise, resolve } = Promise.withResolvers<void>();
  b.handshakes = () => [];
  Object.assign(b, { untilStarted: () => promise });
  const open = async () => {
    const opened: McpSession[] = [];
    const opening = aggregated.openSession(ADA, PROFILE).then((session) => opened.push(session));
    await settled();
    return {
      opened,
      instructions: () => opened.map((each) => each.handshake.greeting.instructions),
      opening,
    };
  };
  const early = await open();
  await pass(9_999);
  assert.equal(early.opened, []);
  await pass(1);
  assert.equal(early.instructions(), [undefined]);
  const listed = aggregated.exchange({ method: 'tools/list' }, { owner: ADA, profile: PROFILE });
  const list = firstValueFrom(listed);
  const later = await open();
  await pass(1_000); // what the session has waited for is not waited for as long again
  assert.is((await list).event.kind, 'result');
  assert.is(later.opened.length, 1);
  const last = await open();
  b.handshakes = () => [handshake];
  resolve();
  await last.opening;
  assert.match(String(last.instructions()), '## b\n\nAsk twice.');
  assert.is(aggregated.untilStarted(ADA), undefined);
  a.handshakes = () => [];
  const inTheMiddle = await open();
  assert.is(inTheMiddle.opened.length, 1, 'it is not starting');
});

test('a session that waited for a start is not opened at a view that was deleted meanwhile', async () => {
  const { b, aggregated } = twoTemplates();
  const { promise, resolve } = Promise.withResolvers<void>();
  b.handshakes = () => [];
  Object.assign(b, { untilStarted: () => promise });
  const opening = aggregated.openSession(ADA, PROFILE);
  aggregated.close('viewDeleted');
  resolve();
  assert.is(await codeOf(opening), 'SESSION_NOT_FOUND');
});

test('leaves out what is not an object in a capability, for which clients refuse the whole answer', () => {
  const { a, b, aggregated } = twoTemplates();
  const odd = { 'com.example/null': null, 'com.example/yes': true, 'com.example/list': [], x: 5 };
  const tasks = { list: null, cancel: true, requests: { tools: { call: 1 }, prompts: 'x' } };
  a.handshake = { ...a.handshake, capabilities: { tasks, extensions: odd, experimental: odd } };
  const capabilities = {
    tasks: { cancel: {}, requests: { tools: { call: {} } } },
    extensions: { ...odd, x: { n: null }, 'com.example/yes': {} },
    experimental: { x: {} },
  };
  b.handshake = { ...b.handshake, capabilities };
  const all = aggregated.handshakes(ADA)[0]?.capabilities;
  assert.equal(all?.tasks, capabilities.tasks);
  assert.equal(all?.extensions, { x: { n: null }, 'com.example/yes': {} });
  assert.equal(all?.experimental, { x: {} });
  a.handshake = { ...a.handshake, capabilities: { tasks: { requests: 5, cancel: null } } };
  const ofA = aggregated.handshakes({ id: 'key:1', templates: new Set(['a']) });
  assert.is(ofA[0]?.capabilities.tasks, undefined);
});

test('leaves out of a capability what would make it too large', () => {
  const { a, b, aggregated } = twoTemplates();
  const many = Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`com.example/${n}`, {}]));
  a.handshake = { ...a.handshake, capabilities: { extensions: many } };
  b.handshake = { ...b.handshake, capabilities: { extensions: { ...many, ...mapKeys(many, 'x') } } };
  assert.equal(aggregated.handshakes(ADA)[0]?.capabilities.extensions, many);
});

test('merges instructions under the names of their templates', () => {
  const { a, b, aggregated } = twoTemplates();
  const instructions = () => aggregated.handshakes(ADA)[0]?.greeting.instructions;
  assert.is(instructions(), undefined);
  b.handshake = { ...b.handshake, greeting: { instructions: 'Ask twice.\nThen act.' } };
  const introduction = 'The names of tools and prompts begin with the name of their server and `__`.';
  assert.is(instructions(), `${introduction}\n\n## b\n\nAsk twice.\nThen act.`);
  a.handshake = { ...a.handshake, greeting: { instructions: 'Be kind.' } };
  assert.match(String(instructions()), '## a\n\nBe kind.\n\n## b\n\nAsk twice.');
  const ofB = aggregated.handshakes({ id: 'key:1', templates: new Set(['b']) });
  assert.not.match(String(ofB[0]?.greeting.instructions), 'Be kind.');
  a.handshake = { ...a.handshake, greeting: { instructions: 'x'.repeat(64 * 1024) } };
  const said = String(instructions());
  assert.match(said, 'The instructions of these servers are too long: b.');
  assert.is(said.length < 66_000, true);
  for (const odd of [7, null, '', ' \n'])
    for (const backends of [a, b])
      backends.handshake = { ...backends.handshake, greeting: { instructions: odd } };
  assert.is(instructions(), undefined);
});

test('sends a request to its template, with the name that the template knows', async () => {
  const { ask, a, b } = twoTemplates();
  const rest = { arguments: { name: 'a__x' }, _meta: { progressToken: 1 } };
  const argument = { name: 'x', value: 'y' };
  const prompt = { type: 'ref/prompt', name: 'p' };
  const uri = { uri: 'a:1' };
  const byUri = { argument, ref: { type: 'ref/resource', ...uri } };
  const table: (readonly [method: string, template: ListingBackends, asked: JsonObject, sent: JsonObject])[] =
    [
      ['tools/call', a, { ...rest, name: 'a__x' }, { ...rest, name: 'x' }],
      ['prompts/get', b, { name: 'b__p' }, { name: 'p' }],
      ['completion/complete', b, { argument, ref: { ...prompt, name: 'b__p' } }, { argument, ref: prompt }],
      ['completion/complete', a, byUri, byUri],
      // The field by which the server decides is the only one.
      [
        'completion/complete',
        b,
        { argument, ref: { ...prompt, ...uri, Name: 'x', name: 'b__p' } },
        { argument, ref: prompt },
      ],
      ['completion/complete', a, { argument, ref: { ...byUri.ref, name: 'b__p' } }, byUri],
      ...['resources/read', 'resources/subscribe', 'resources/unsubscribe'].map(
        (method) => [method, a, uri, uri] as const,
      ),
    ];
  for (const [method, template, params, sent] of table) {
    const headers = { 'mcp-param-x': '1' };
    await ask({ method, params, headers });
    assert.equal(template.asked.at(-1), { method, params: sent, headers, instanceId: undefined }, method);
  }
  for (const method of ['tasks/get', 'tasks/cancel', 'vendor/x']) {
    await ask({ method, params: { taskId: '1' } }, ADA, 'b/two');
    assert.equal(b.asked.at(-1), { method, params: { taskId: '1' }, instanceId: 'two' });
  }
});

test('refuses unknown names, resources and tasks with the code of their kind', async () => {
  const { ask, a, b } = twoTemplates();
  b.handshake = { ...b.handshake, capabilities: { ...b.handshake.capabilities, tasks: {} } };
  const cases: readonly [method: string, params: JsonObject | undefined, code: number][] = [
    ['tools/call', { name: 'x' }, -32602],
    ['tools/call', { name: 7 }, -32602],
    ['tools/call', undefined, -32602],
    ['prompts/get', { name: 'c__p' }, -32602],
    ['completion/complete', { ref: 'p' }, -32602],
    ['resources/read', { uri: 'z:1' }, -32002],
    ['resources/read', undefined, -32002],
    ['tasks/get', { taskId: '1' }, -32602],
    ['tasks/result', { taskId: '1' }, -32602],
    ['tasks/list', undefined, -32601],
  ];
  for (const [method, params, code] of cases) {
    const { said, instanceId } = await ask(params === undefined ? { method } : { method, params });
    assert.equal([Object(said).error?.code, instanceId], [code, ''], method);
  }
  assert.ok([...a.asked, ...b.asked].every(({ method }) => method.endsWith('/list')));
});

test('names the tool or prompt that was probably meant, which the caller may use', async () => {
  const { ask, a, b } = twoTemplates();
  a.lists = { tools: [{ name: 'search' }, { name: 'twice' }] };
  b.lists = { tools: [{ name: 'lookup' }, { name: 'twice' }], prompts: [{ name: 'summary' }] };
  const errorOf = async (method: string, name: string, owner = ADA) =>
    Object((await ask({ method, params: { name } }, owner)).said).error.message;
  for (const [method, name, expected] of [
    ['tools/call', 'serach', 'Unknown tool; did you mean "search"?'],
    ['tools/call', 'aa__search', 'Unknown tool; did you mean "a__search"?'],
    ['tools/call', 'a_search', 'Unknown tool; did you mean "a__search"?'],
    ['tools/call', 'twcie', 'Unknown tool; did you mean "a__twice" or "b__twice"?'],
    ['tools/call', 'twice', 'Unknown tool; did you mean "a__twice" or "b__twice"?'],
    ['tools/call', 'entirely different', 'Unknown tool.'],
    ['tools/call', 's'.repeat(101), 'Unknown tool.'],
    ['prompts/get', 'sumary', 'Unknown prompt.'],
    ['prompts/get', 'bb__summary', 'Unknown prompt; did you mean "b__summary"?'],
  ] as const)
    assert.is(await errorOf(method, name), expected, name);
  const owner = { id: 'key:1', templates: new Set(['b']) };
  assert.is(await errorOf('tools/call', 'serach', owner), 'Unknown tool.');
  assert.is(await errorOf('tools/call', 'twcie', owner), 'Unknown tool; did you mean "twice"?');
});

test('refuses a tool of a forbidden template like an unknown tool', async () => {
  const { ask } = twoTemplates();
  const owner = { id: 'key:1', templates: new Set(['b']) };
  const call = (name: string) => ask({ method: 'tools/call', params: { name } }, owner);
  assert.equal(await call('a__x'), await call('c__x'));
  assert.equal((await ask({ method: 'tools/list' }, owner)).said, { tools: [shownTool('b__x')] });
});

test('shares no list of one caller with another, while it is read and when the template fails', async () => {
  const { ask, a } = twoTemplates();
  const namesOf = async (id: string) => {
    const { said } = await ask({ method: 'tools/list' }, { id, templates: new Set(['a']) });
    return Object(said).tools.map(({ name }: JsonObject) => name);
  };
  const both = () => Promise.all([namesOf('ann'), namesOf('bob')]);
  a.exchange = (_request, { owner = ADA } = {}) => of(answered({ tools: [{ name: owner.id }] }));
  assert.equal(await both(), [['a__ann'], ['a__bob']]);
  a.exchange = () => throwError(() => new Error('dead'));
  assert.equal(await both(), [['a__ann'], ['a__bob']]);
});

test('reports a template that is added later once to its owners, and then its changes', () => {
  const { aggregated, b, listChanges$, templates } = twoTemplates();
  templates.pop();
  const tools = new Set<ListField>(['tools']);
  const listen = (owner: Owner) => {
    const received: string[] = [];
    const wanted = { lists: tools, resources: new Set<string>() };
    let isOver = false;
    const changes$ = aggregated.changes(owner, PROFILE, wanted);
    withListNotices(changes$, EMPTY, { ...CLOCK, scheduler: untimedScheduler() }).subscribe({
      next: ({ method }) => received.push(method),
      complete: () => {
        isOver = true;
      },
    });
    return { received, isOver: () => isOver };
  };
  const [ada, key] = [listen(ADA), listen({ id: 'key:1', templates: new Set(['a', 'c']) })];
  templates.push('b');
  for (let turn = 0; turn < 3; turn += 1) listChanges$.next({ template: 'b', list: 'tools' });
  listChanges$.next({ template: 'b', list: 'prompts' });
  mock.timers.tick(5_000);
  assert.equal([ada.received, key.received], [['notifications/tools/list_changed'], []]);
  assert.equal(b.wanted, [{ lists: tools, resources: new Set() }]);
  b.changes$.next({ kind: 'notification', method: 'notifications/tools/list_changed', params: {} });
  mock.timers.tick(5_000);
  assert.equal([ada.received.length, key.received.length], [2, 0]);
  listChanges$.complete();
  assert.equal([ada.isOver(), key.isOver()], [false, false], 'templates complete by themselves');
});

test('leaves nothing of a template that is forgotten, and follows another one of its name', async () => {
  const { aggregated, b, listChanges$ } = twoTemplates();
  b.lists = { resources: [{ uri: 'b:1' }] };
  b.handshake = { ...b.handshake, capabilities: { resources: {} } };
  const wanted = { lists: new Set<ListField>(), resources: new Set(['b:1']) };
  const subscription = aggregated.changes(ADA, PROFILE, wanted).subscribe();
  await untilWanted(b, [[], ['b:1']]);
  b.changes$.complete();
  assert.equal(wantedUris(b), []);
  b.changes$ = new Subject();
  listChanges$.next({ template: 'b', list: 'resources' });
  await untilWanted(b, [[], ['b:1']]);
  subscription.unsubscribe();
});

for (const [when, hook, firstUse] of [
  ['while lists are read', 'exchange', 1],
  ['before it is subscribed to', 'changes', 2],
] as const) {
  test(`a template that is deleted ${when} ends no stream over several`, async () => {
    const { a, b, aggregated, templates } = twoTemplates();
    b.lists = { resources: [{ uri: 'b:1' }] };
    b.handshake = a.handshake;
    const faults: unknown[] = [];
    const original: (...of: never[]) => unknown = a[hook].bind(a);
    let uses = 0;
    a[hook] = (...of: never[]) => {
      uses += 1;
      if (uses === firstUse) templates.pop();
      return original(...of) as never;
    };
    const wanted = { lists: new Set<ListField>(), resources: new Set(['a:1', 'b:1']) };
    const error = (fault: unknown) => faults.push(fault);
    const subscription = aggregated.changes(ADA, PROFILE, wanted).subscribe({ error });
    await passTurns(30);
    assert.equal([faults, wantedUris(a)[1]?.[0], wantedUris(b)], [[], 'a:1', [[]]]);
    subscription.unsubscribe();
  });
}

test('finds a tool by its aggregate name, also by one that a list has cut', async () => {
  const { aggregated, a, ask } = twoTemplates();
  const found = ['a__x', 'a__y', 'c__x', 'x'].map((name) => aggregated.tool(name, ADA)?.name);
  assert.equal(found, ['x', undefined, undefined, undefined]);
  const owner = { id: 'key:1', templates: new Set(['b']) };
  assert.equal([aggregated.tool('a__x', owner), aggregated.tool('b__x', owner)], [undefined, { name: 'x' }]);
  assert.is(aggregated.tool('a__x'), undefined);
  const name = 'l'.repeat(100);
  a.lists = { tools: [{ name }] };
  const [listed] = Object((await ask({ method: 'tools/list' })).said).tools;
  assert.equal([listed.name.length, aggregated.tool(listed.name, ADA)], [64, { name }]);
});

test('a session ends when its own owner may use other templates', async () => {
  const { aggregated, a, uses } = twoTemplates();
  const owner = { id: 'key:1', templates: new Set(['a', 'b']) };
  const session = await aggregated.openSession(owner, PROFILE);
  await firstValueFrom(session.exchange({ method: 'tools/call', params: { name: 'a__x' } }));
  const found = [owner, { ...owner, templates: new Set(['b', 'a']) }, { ...ADA, templates: new Set(['b']) }];
  uses.splice(0);
  for (const asker of found) assert.is(aggregated.session(session.id, asker), session);
  assert.is(uses.length, found.length, 'each request is a use');
  assert.is(aggregated.session(session.id, { ...owner, templates: new Set(['b']) }), undefined);
  assert.is(await firstValueFrom(a.sessions[0]?.ended$ ?? of('open')), 'closed');
  assert.is(aggregated.session(session.id, owner), undefined);
});

test.run();

function mapKeys(object: JsonObject, suffix: string): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [`${key}${suffix}`, value]));
}

// URIs that several templates of an aggregate have: what is composed, where it leads, and that answers keep their other bytes. The same
// with real servers and clients is in http/mcp/equal-uris.spec.ts.

import { firstValueFrom, of } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ExchangeRequest } from '../../../../src/domain/calls/exchange.ts';
import { type JsonObject, JsonText } from '../../../../src/domain/json/json.ts';
import { type ServerMessage, updateNotice } from '../../../../src/domain/mcp/client.ts';
import type { ListField } from '../../../../src/domain/mcp/mcp.ts';
import type { McpSession } from '../../../../src/domain/sessions/mcp-session.ts';
import { readSession, writeSession } from '../../../../src/domain/sessions/session-value.ts';
import { ResourceTargets } from '../../../../src/protocol/aggregate/uris/resource-targets.ts';
import { suite } from '../../../helpers/suite.ts';
import { settled } from '../../../helpers/time/simulated-time.ts';
import { untimedScheduler } from '../../../helpers/time/turns.ts';
import { ADA, answered, ListingBackends, type Lists, PROFILE } from '../../listing-backends.ts';
import { aggregateOf, fixed } from '../aggregate-of.ts';

const test = suite('composed URIs');

function setUp(lists: Readonly<Record<string, Lists>>) {
  const all = Object.fromEntries(
    Object.entries(lists).map(([template, each]) => [template, new ListingBackends(each)]),
  );
  const { aggregated } = aggregateOf(fixed(all));
  const answerTo = async (request: ExchangeRequest) => {
    const { event } = await firstValueFrom(aggregated.exchange(request, { owner: ADA, profile: PROFILE }));
    return event.kind === 'result' ? event.result : JsonText.ofValue(Object(event).error);
  };
  const listed = async (list: ListField, field: string) => {
    const method = list === 'resourceTemplates' ? 'resources/templates/list' : `${list}/list`;
    const { value } = await answerTo({ method });
    return Object(value)[list].map((item: JsonObject) => item[field]);
  };
  const readAt = async (uri: string) => {
    for (const { asked } of Object.values(all)) asked.length = 0;
    await answerTo({ method: 'resources/read', params: { uri } });
    return Object.entries(all).flatMap(([template, { asked }]) =>
      asked.flatMap(({ method, params }) =>
        method === 'resources/read' ? `${template} ${params?.uri}` : [],
      ),
    );
  };
  return { all, aggregated, answerTo, listed, readAt };
}

const resources = (...uris: string[]): Lists => ({ resources: uris.map((uri) => ({ uri, name: uri })) });
const tool = (name: string, _meta: JsonObject) => ({ name, inputSchema: { type: 'object' }, _meta });

test('each composed URI leads back, whatever else the templates list', async () => {
  const { listed, readAt } = setUp({
    a: resources('x://p', 'urn:p', 'x://a/p', 'x://own'),
    b: resources('x://p', 'urn:p', 'x://a/a/p', 'x://a/p'),
    c: resources('x://b/p', 'x://p/', 'urn://p', '//p'),
  });
  const SHOWN = {
    'x://p': 'a x://p', // all composed forms are taken
    'urn://a/p': 'a urn:p',
    'x://a/a/a/p': 'a x://a/p',
    'x://own': 'a x://own',
    'x://b/b/p': 'b x://p',
    'urn://b/p': 'b urn:p',
    'x://a/a/p': 'b x://a/a/p',
    'x://b/a/p': 'b x://a/p',
    'x://b/p': 'c x://b/p',
    'x://p/': 'c x://p/',
    'urn://p': 'c urn://p',
    '//p': 'c //p',
  };
  assert.equal(await listed('resources', 'uri'), Object.keys(SHOWN));
  const others = { 'urn:p': 'a urn:p', 'x://a/own': 'a x://own', 'x://a/p': 'a x://a/p' };
  for (const [uri, read] of Object.entries({ ...SHOWN, ...others })) assert.equal(await readAt(uri), [read]);
  for (const unknown of ['x://d/p', 'x://c/p', 'x://a', 'x://a/', 'urn:a/p'])
    assert.equal(await readAt(unknown), []);
});

test('URI templates are composed where their scheme is no expression', async () => {
  const both: Lists = {
    resourceTemplates: [
      { uriTemplate: 'x://{id}', name: 'x' },
      { uriTemplate: '{scheme}://all', name: 'all' },
    ],
  };
  const { listed, readAt } = setUp({ a: both, b: both, c: resources('x://b/own/7') });
  assert.equal(await listed('resourceTemplates', 'uriTemplate'), [
    'x://a/{id}',
    '{scheme}://all',
    'x://b/{id}',
  ]);
  for (const [uri, read] of [
    ['x://b/7', 'b x://7'],
    ['x://c/7', 'a x://c/7'],
    ['y://all', 'a y://all'],
    ['y://b/all', 'b y://all'],
    ['x://b/own/7', 'c x://b/own/7'],
  ])
    assert.equal(await readAt(String(uri)), [read]);
});

test('a page of a tool is composed in both forms of its key, whether it is listed or not', async () => {
  const page = 'ui://p';
  const { answerTo, listed } = setUp({
    a: {
      tools: [tool('x', { ui: { resourceUri: page, visibility: ['app'] }, 'ui/resourceUri': page, n: 1 })],
    },
    b: { tools: [tool('y', { 'ui/resourceUri': page })], ...resources(page) },
    c: { tools: [tool('z', { ui: { resourceUri: 'ui://c' } })], ...resources('ui://c') },
  });
  const metas = (await listed('tools', '_meta')) as JsonObject[];
  assert.equal(metas, [
    { ui: { resourceUri: 'ui://a/p', visibility: ['app'] }, 'ui/resourceUri': 'ui://a/p', n: 1 },
    { 'ui/resourceUri': 'ui://b/p' },
    { ui: { resourceUri: 'ui://c' } },
  ]);
  assert.equal(await listed('resources', 'uri'), ['ui://b/p', 'ui://c']);
  const { value } = await answerTo({ method: 'resources/read', params: { uri: 'ui://a/p' } });
  assert.equal(value, { called: { uri: 'ui://a/p' } });
});

test('lists without pages read no other list', async () => {
  const { all, listed } = setUp({
    a: { tools: [tool('x', {})], ...resources('x://p') },
    b: resources('x://p'),
  });
  await listed('tools', 'name');
  await listed('resources', 'uri');
  assert.equal(
    all.a?.asked.map(({ method }) => method),
    ['tools/list', 'resources/list'],
  );
});

test('whether a view takes a tool is asked for tools with pages only', async () => {
  const asked: string[] = [];
  const owners = new ResourceTargets({
    lists: { offers: () => true, announces: () => false, gather: async () => [] },
    templates: () => ['a'],
    scheduler: untimedScheduler(),
    takesTool: (_template, name) => asked.push(name) > 0,
  });
  const page = { ui: { resourceUri: 'ui://p' } };
  const items = [tool('x', {}), tool('y', page), { name: 'z' }];
  await owners.learn('tools', [{ template: 'a', items }], { owner: ADA, profile: PROFILE });
  assert.equal(asked, ['y']);
});

test('an answer keeps all bytes but those of its URIs', async () => {
  const { all, answerTo } = setUp({ a: resources('x://p', 'x://q'), b: resources('x://p', 'x://q') });
  const answerOf = async (uri: string, text: string) => {
    const instead = {
      event: { kind: 'result', result: JsonText.ofText(text) },
      instanceId: '',
      serverId: '',
    } as const;
    await answerTo({ method: 'resources/list' });
    if (all.b !== undefined) all.b.instead = of(instead);
    const { text: shown } = await answerTo({ method: 'resources/read', params: { uri } });
    if (all.b !== undefined) all.b.instead = undefined;
    return shown;
  };
  const body = (uri: string) =>
    `{ "contents" : [ {${uri},"text":"\\u00e9 x://p \\/","size":12345678901234567890,"_meta":{"uri":"x://p", "n":1.0}} ,{"uri":"x://other","a":[]} ],` +
    `"ttlMs":1e2,"_meta":{"uri":"x://p"}}`;
  const shown = await answerOf('x://b/p', body('"uri":"x:\\/\\/p"'));
  assert.is(shown.replaceAll(' ', ''), body('"uri":"x://b/p"').replaceAll(' ', ''));
  assert.match(await answerOf('x://b/p', body('"uri":"x://p#part"')), '"uri":"x://b/p#part"');
  assert.match(await answerOf('x://b/p', body('"uri":"x://q"')), '"uri":"x://b/q"');
  const same = body('"uri":"x://elsewhere"');
  assert.is(await answerOf('x://b/p', same), same);
});

test('a session tells of updates by the name of its client, also after it was made again elsewhere', async () => {
  const lists = { a: resources('x://p'), b: resources('x://p') };
  const [before, after] = [setUp(lists), setUp(lists)];
  const session = await before.aggregated.openSession(ADA, PROFILE);
  const about = (of: McpSession, name: string, uri: string) =>
    firstValueFrom(of.exchange({ method: `resources/${name}`, params: { uri } }));
  await about(session, 'subscribe', 'x://b/p');
  const value = readSession(writeSession(Reflect.get(session, 'value')));
  assert.equal(
    [value.uris, Reflect.get(value, 'composed')],
    [{ b: ['x://b/p'] }, { b: { 'x://b/p': 'x://p' } }],
  );
  if (value.kind === 'template') throw new Error('another kind was written');
  const recovered = after.aggregated.recoverFrom(session.id, value, ADA, 2);
  const received: ServerMessage[] = [];
  const listening = recovered.messages$.subscribe((message) => received.push(message));
  await settled();
  assert.equal(
    after.all.b?.asked.map(({ method, params }) => [method, params?.uri]),
    [['resources/subscribe', 'x://p']],
  );
  const update = (uri: string) =>
    ({ kind: 'notification', method: 'notifications/resources/updated', params: { uri, n: 1 } }) as const;
  const { b } = after.all;
  assert.equal(received.splice(0), [updateNotice('x://b/p')], 'it may have missed one');
  b?.sessions[0]?.messages.next(update('x://p'));
  assert.equal(received, [update('x://b/p')]);
  await firstValueFrom(recovered.exchange({ method: 'resources/list' }));
  if (b !== undefined) b.instead = of({ ...answered({}), event: update('x://p/part') }, answered({}));
  const events: unknown[] = [];
  await new Promise<void>((resolve) =>
    recovered
      .exchange({ method: 'resources/read', params: { uri: 'x://b/p' } })
      .subscribe({ next: ({ event }) => events.push(event), complete: resolve }),
  );
  assert.equal(events[0], update('x://b/p/part'), 'on the stream of a call, too');
  if (b !== undefined) [b.instead, b.lists] = [undefined, {}];
  await about(recovered, 'unsubscribe', 'x://b/p');
  assert.equal(b?.asked.at(-1)?.params, { uri: 'x://p' }, 'where it was made');
  assert.equal(recovered.value.uris, {});
  listening.unsubscribe();
});

test('a client that subscribed at two templates under one URI ends both', async () => {
  const { all, aggregated } = setUp({ a: resources('x://p'), b: {}, c: {} });
  const { a, b, c } = all;
  const session = await aggregated.openSession(ADA, PROFILE);
  const about = (name: string, uri: string) =>
    firstValueFrom(session.exchange({ method: `resources/${name}`, params: { uri } }));
  const moveTo = async (owner: typeof a) => {
    for (const each of Object.values(all)) each.lists = each === owner ? resources('x://p') : {};
    await firstValueFrom(session.exchange({ method: 'resources/list' }));
  };
  for (const owner of [a, b, c]) {
    await moveTo(owner);
    await about('subscribe', 'x://p');
  }
  const subscribedAt = () => Reflect.get(Reflect.get(session, 'value') as object, 'uris');
  assert.equal(subscribedAt(), { a: ['x://p'], b: ['x://p'], c: ['x://p'] });
  await b?.sessions[0]?.close();
  await about('unsubscribe', 'x://p');
  assert.equal(subscribedAt(), {});
  for (const each of [a, c]) assert.is(each?.asked.at(-1)?.method, 'resources/unsubscribe');
  assert.is(b?.sessions.length, 1, 'no session is opened for that');
});

test.run();

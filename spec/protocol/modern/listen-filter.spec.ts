import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json.ts';
import { grant, isGranted } from '../../../src/protocol/modern/listen.ts';
import { RpcFailure } from '../../../src/protocol/rpc.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('listen filter');

const all = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
};
const everything = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
  resourceSubscriptions: ['a://b'],
};

test('grants what is wanted and announced', () => {
  const { shown, wanted } = grant({ notifications: everything }, all);
  assert.equal(shown, everything);
  assert.equal([...wanted.lists], ['tools', 'prompts', 'resources', 'resourceTemplates']);
  assert.equal([...wanted.resources], ['a://b']);
});

test('refuses a URI of more than 8 KiB', () => {
  const uri = 'x'.repeat(8 * 1024 + 1);
  assert.throws(
    () => grant({ notifications: { resourceSubscriptions: ['a://b', uri] } }, {}),
    (thrown: unknown) => thrown instanceof RpcFailure && thrown.error.code === -32602,
  );
});

test('leaves out what is not wanted, or not announced', () => {
  const table: readonly [wanted: JsonObject, capabilities: JsonObject, shown: JsonObject][] = [
    [{}, all, {}],
    [{ toolsListChanged: false, resourceSubscriptions: [] }, all, {}],
    [{ vendor: true, toolsListChanged: true }, all, { toolsListChanged: true }],
    [everything, {}, {}],
    [
      everything,
      { tools: {}, prompts: { listChanged: false }, resources: { subscribe: true } },
      { resourceSubscriptions: ['a://b'] },
    ],
    [everything, { resources: { listChanged: true } }, { resourcesListChanged: true }],
  ];
  for (const [notifications, capabilities, shown] of table) {
    assert.equal(grant({ notifications }, capabilities).shown, shown);
  }
  assert.is(grant({ notifications: everything }, {}).wanted.resources.size, 0);
});

test('refuses what is no filter', () => {
  const bad: readonly JsonObject[] = [
    {},
    { notifications: null },
    { notifications: [] },
    { notifications: { toolsListChanged: 'yes' } },
    { notifications: { resourceSubscriptions: 'a://b' } },
    { notifications: { resourceSubscriptions: ['a://b', 7] } },
    { notifications: { resourceSubscriptions: Array(1_001).fill('a://b') } },
  ];
  for (const params of bad) {
    try {
      grant(params, all);
      assert.unreachable();
    } catch (thrown) {
      if (!(thrown instanceof RpcFailure)) throw thrown;
      assert.equal([thrown.status, thrown.error.code], [200, -32602]);
    }
  }
});

test('a message is granted by its kind, and by the resource it is about', () => {
  const { wanted } = grant({ notifications: { ...everything, promptsListChanged: false } }, all);
  const granted = (kind: string, params: JsonObject = {}) =>
    isGranted(`notifications/${kind}`, params, wanted);
  assert.is(granted('tools/list_changed'), true);
  assert.is(granted('resources/list_changed'), true);
  assert.is(granted('prompts/list_changed'), false);
  for (const uri of ['a://b', 'a://b/c', 'a://b?q', 'a://b#f'])
    assert.is(granted('resources/updated', { uri }), true);
  for (const uri of ['a://bc', 'a://', 'x', 7]) assert.is(granted('resources/updated', { uri }), false);
  for (const other of ['message', 'progress', 'cancelled']) assert.is(granted(other), false);
});

test.run();

// Where each request about all templates goes, and how it looks there.

import * as assert from 'uvu/assert';
import type { ExchangeRequest } from '../../../src/domain/exchange.ts';
import { AggregateDirectory } from '../../../src/protocol/aggregate/aggregate-directory.ts';
import { AggregateLists } from '../../../src/protocol/aggregate/aggregate-lists.ts';
import { destinationOf } from '../../../src/protocol/aggregate/aggregate-requests.ts';
import { suite } from '../../helpers/suite.ts';
import { CLIENT, ListingBackends } from '../listing-backends.ts';

const test = suite('joined requests');

const backends = new ListingBackends({ resources: [{ uri: 'a:1' }] });
const directory = new AggregateDirectory({
  lists: new AggregateLists(() => backends),
  templates: () => ['a', 'b'],
});
const find = (request: ExchangeRequest) => destinationOf(request, directory, CLIENT);

test('answers lists from all', async () => {
  for (const [method, list] of [
    ['tools/list', 'tools'],
    ['prompts/list', 'prompts'],
    ['resources/list', 'resources'],
    ['resources/templates/list', 'resourceTemplates'],
  ] as const)
    assert.equal(await find({ method, params: { cursor: 'x' } }), { kind: 'list', list });
});

test('gives calls and prompts their own name back, and leaves the rest as it is', async () => {
  const params = { arguments: { name: 'a__x' }, _meta: { progressToken: 1 } };
  const headers = { 'mcp-param-x': '1' };
  assert.equal(await find({ method: 'tools/call', params: { ...params, name: 'a__x' }, headers }), {
    kind: 'template',
    template: 'a',
    request: { method: 'tools/call', params: { ...params, name: 'x' }, headers },
  });
  assert.equal(await find({ method: 'prompts/get', params: { name: 'b__p' } }), {
    kind: 'template',
    template: 'b',
    request: { method: 'prompts/get', params: { name: 'p' } },
  });
});

test('sends resources to who has them', async () => {
  for (const method of ['resources/read', 'resources/subscribe', 'resources/unsubscribe']) {
    const request = { method, params: { uri: 'a:1' } };
    assert.equal(await find(request), { kind: 'template', template: 'a', request });
  }
});

test('completes the arguments of prompts and of resources', async () => {
  const argument = { name: 'x', value: 'y' };
  const method = 'completion/complete';
  assert.equal(await find({ method, params: { argument, ref: { type: 'ref/prompt', name: 'b__p' } } }), {
    kind: 'template',
    template: 'b',
    request: { method, params: { argument, ref: { type: 'ref/prompt', name: 'p' } } },
  });
  const request = { method, params: { argument, ref: { type: 'ref/resource', uri: 'a:1' } } };
  assert.equal(await find(request), { kind: 'template', template: 'a', request });
});

test('refuses what is nobody’s, with the code of its kind', async () => {
  const cases: [ExchangeRequest, number][] = [
    [{ method: 'tools/call', params: { name: 'x' } }, -32602],
    [{ method: 'tools/call', params: { name: 7 } }, -32602],
    [{ method: 'tools/call' }, -32602],
    [{ method: 'prompts/get', params: { name: 'c__p' } }, -32602],
    [{ method: 'completion/complete', params: { ref: 'p' } }, -32602],
    [{ method: 'resources/read', params: { uri: 'z:1' } }, -32002],
    [{ method: 'resources/read' }, -32002],
    [{ method: 'tasks/get', params: { taskId: '1' } }, -32602],
    [{ method: 'tasks/result', params: { taskId: '1' } }, -32602],
    [{ method: 'tasks/list' }, -32601],
  ];
  for (const [request, code] of cases) {
    const found = await find(request);
    assert.equal(
      [found.kind, found.kind === 'refused' && found.error.code],
      ['refused', code],
      request.method,
    );
  }
});

test('sends what goes on with an instance to its template, and knows no other task', async () => {
  for (const method of ['tasks/get', 'tasks/cancel', 'vendor/x']) {
    const request = { method, params: { taskId: '1' } };
    assert.equal(await destinationOf(request, directory, CLIENT, 'b'), {
      kind: 'template',
      template: 'b',
      request,
    });
  }
  const error = { code: -32602, message: 'Unknown task' };
  assert.equal(await find({ method: 'tasks/get', params: { taskId: '1' } }), { kind: 'refused', error });
});

test.run();

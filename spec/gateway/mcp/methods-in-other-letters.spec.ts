// Methods that a server may take for those of MCP: one that ignores case, or reads a text up to a NUL. What the gateway decides by
// the method, such as the right to a tool, would not be asked for them.

import * as assert from 'uvu/assert';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import { ToolRights } from '../../../src/domain/accounts/rights.ts';
import { isLikeMcp } from '../../../src/domain/mcp/mcp.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { suite } from '../../helpers/suite.ts';
import { modernRequest, openSession, postTo } from './post.ts';

const test = suite('methods in other letters');
const LIMITED: Principal = { ...ANONYMOUS, id: 'user:a', tools: new ToolRights([['t/ok']]) };
const LIKE = [
  ...[
    'Tools/Call',
    'TOOLS/CALL',
    'tools/call\0',
    'tools/call\0x',
    ' tools/call',
    'tools/call\n',
    'tools\u200b/call',
  ],
  ...['toolſ/call', 'Tasks/get', 'tasks/result\0', 'Resources/Read', 'Initialize', 'Logging/setlevel'],
];
const OTHERS = ['tools/calls', 'tool/call', 'x/y', 'skills/list', 'files/Read', 'tools'];
let gateway: Gateway;
let asked: string[];

test.before.each(async () => {
  asked = [];
  gateway = await createGateway();
  const handler = ({ method }: { method: string }) => {
    asked.push(method);
    if (method === 'tools/list') return { tools: [{ name: 'ok' }, { name: 'bad' }] };
    return { content: [{ type: 'text', text: method }] };
  };
  await gateway.register('t', { id: 'one', handler: handler as never }, { waitMs: 5_000 });
  asked = [];
});
test.after.each(() => gateway.close({ graceMs: 0 }));

const params = { name: 'bad', arguments: {}, taskId: 'x' };

test('do not reach a server, from a client of either era', async () => {
  const headers = await openSession(gateway, 't', LIMITED);
  for (const method of LIKE) {
    const message = { method, params };
    const { answer } = await postTo(gateway, { template: 't', message, headers, principal: LIMITED });
    assert.equal(Object(answer.error).code, -32601, JSON.stringify(method));
    const modern = modernRequest(method, params);
    const { status } = await postTo(gateway, { template: 't', ...modern, principal: LIMITED });
    assert.ok([400, 404].includes(status ?? 0), `${JSON.stringify(method)} ${status}`);
  }
  assert.equal(asked, []);
  for (const method of OTHERS)
    await postTo(gateway, { template: 't', message: { method, params }, headers, principal: LIMITED });
  assert.equal(asked, OTHERS);
});

test('are told apart from those of MCP and from those of a server', () => {
  const notices = ['notifications/Cancelled', 'notifications/cancelled\0', 'notifications/INITIALIZED'];
  for (const method of [...LIKE, ...notices]) assert.is(isLikeMcp(method), true, JSON.stringify(method));
  const own = ['tools/call', 'tasks/get', 'tasks/list', 'logging/setLevel', 'subscriptions/listen'];
  for (const method of [...OTHERS, ...own, 'notifications/cancelled', 'notifications/custom', 'tasks/own'])
    assert.is(isLikeMcp(method), false, method);
});

test.run();

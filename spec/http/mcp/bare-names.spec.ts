// Bare names at `/mcp` over HTTP, for clients of both eras: names that clash are prefixed on all sides, and each call reaches its tool.

import * as assert from 'uvu/assert';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { MCP_TYPES, modern, openSession, rpc } from '../../helpers/clients/mcp-messages.ts';
import { type Credentials, startWithAccounts } from '../../helpers/http/accounts.ts';
import { appFor } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('bare names at /mcp');
const app = appFor(test, () => startWithAccounts({ gateway: { aggregate: { names: 'bare' } } }), 'each');
const searching = appFor(
  test,
  () => startWithAccounts({ gateway: { aggregate: { names: 'bare', mode: 'search' } } }),
  'each',
);

/** A backend whose tools and prompts answer the template and their own name. */
function serving(template: string, names: readonly string[]): InProcessHandler {
  return ({ method, params }) => {
    const text = { type: 'text', text: `${template} ${params?.name}` };
    if (method === 'tools/call') return { content: [text] };
    if (method === 'prompts/get') return { messages: [{ role: 'user', content: text }] };
    if (method === 'prompts/list') return { prompts: names.map((name) => ({ name })) };
    return { tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) };
  };
}

const GIT = ['list', 'search', 'issues.list'];

test.before.each(async () => {
  for (const each of [app, searching]) {
    await each.serve('git', 'one', serving('git', GIT));
    await each.serve('mail', 'one', serving('mail', ['search', 'send']));
  }
});

type Ask = (method: string, params?: Params, as?: Credentials, at?: typeof app) => Promise<Message>;
type Message = Readonly<Record<string, unknown>>;
type Params = { readonly name?: string; readonly arguments?: object };

const ofModern: Ask = async (method, params = {}, as, at = app) => {
  const { body, headers } = modern(method, params);
  return messageIn((await at.as(as ?? at.admin, 'POST', '/mcp', { body, headers })).text);
};

const ofLegacy: Ask = async (method, params = {}, as, at = app) => {
  const credentials = as ?? at.admin;
  const session = await openSession(at, '/mcp', { credentials });
  const ask = { body: rpc(method, params), headers: { ...MCP_TYPES, ...session } };
  return messageIn((await at.as(credentials, 'POST', '/mcp', ask)).text);
};

/** A body, or the last event of a stream. */
function messageIn(text: string): Message {
  const [data] = [...text.matchAll(/^data: (.+)$/gm)].map(([, event]) => event).reverse();
  return Object(JSON.parse(data ?? text));
}

const namesIn = ({ result }: Message, list = 'tools'): readonly string[] =>
  Object(result)
    [list].map(({ name }: { readonly name: string }) => name)
    .sort();

/** The text of the answer, or the code of the error. */
function textIn({ result, error }: Message): unknown {
  if (error !== undefined) return Object(error).code;
  const { content, messages } = Object(result);
  return (content ?? messages.map((message: Message) => message.content))[0].text;
}

const ISSUES_LIST = /^issues_list_[0-9a-f]{16}$/;

for (const [era, ask] of Object.entries({ modern: ofModern, legacy: ofLegacy })) {
  const call = async (name: string, as?: Credentials) => textIn(await ask('tools/call', { name }, as));

  test(`a client of the ${era} era gets own names, and prefixed ones of tools and prompts that clash`, async () => {
    for (const list of ['tools', 'prompts']) {
      const names = namesIn(await ask(`${list}/list`), list);
      const [safe] = names.filter((name) => ISSUES_LIST.test(name));
      assert.equal(names, ['git__search', safe, 'list', 'mail__search', 'send'].sort());
      const method = list === 'tools' ? 'tools/call' : 'prompts/get';
      for (const name of ['list', 'send', 'git__search', 'mail__search', safe]) {
        const text = textIn(await ask(method, { name: String(name) }));
        assert.ok(String(text).length > 6, `${method} ${name}: ${text}`);
      }
    }
  });

  test(`a call of the ${era} era by a bare, own or prefixed name reaches its tool`, async () => {
    assert.is(await call('list'), 'git list');
    assert.is(await call('git__list'), 'git list');
    assert.is(await call('mail__send'), 'mail send');
    assert.is(await call('mail__search'), 'mail search');
    assert.is(await call('issues.list'), 'git issues.list');
    const { result } = await ask('prompts/get', { name: 'git__list' });
    assert.is(Object(result).messages[0].content.text, 'git list');
    assert.is(await call('search'), -32602);
    for (const name of ['mail__list', 'constructor', '__proto__', 'x']) assert.is(await call(name), -32602);
  });

  test(`a second tool of a name takes no calls of the first of a ${era} client`, async () => {
    assert.is(await call('send'), 'mail send');
    await app.serve('post', 'one', serving('post', ['send']));
    const names = namesIn(await ask('tools/list'));
    assert.ok(names.includes('mail__send') && names.includes('post__send') && !names.includes('send'));
    assert.is(await call('send'), -32602);
    assert.is(await call('mail__send'), 'mail send');
    assert.is(await call('post__send'), 'post send');
  });

  test(`no tool gets the prefixed name of another one, listed or not, for a ${era} client`, async () => {
    await app.serve('odd', 'one', serving('odd', ['git__list', 'mail__new', 'free__name']));
    const names = namesIn(await ask('tools/list'));
    assert.ok(!names.includes('git__list') && !names.includes('mail__new'));
    assert.ok(names.includes('odd__git__list') && names.includes('free__name'));
    assert.is(await call('git__list'), 'git list');
    assert.is(await call('mail__new'), -32602);
    assert.is(await call('odd__mail__new'), 'odd mail__new');
    assert.is(await call('free__name'), 'odd free__name');
  });

  test(`names of the ${era} era depend on what the caller may use, and say nothing of the rest`, async () => {
    const key = await app.key(['tools:call'], ['mail']);
    assert.is(await call('git__search'), 'git search');
    assert.equal(namesIn(await ask('tools/list', {}, key)), ['search', 'send']);
    assert.is(await call('search', key), 'mail search');
    assert.is(await call('mail__search', key), 'mail search');
    for (const name of ['list', 'git__list', 'git__search']) assert.is(await call(name, key), -32602);
  });

  test(`search mode of the ${era} era finds and calls tools by these names`, async () => {
    const inSearch = (name: string, args: object) =>
      ask('tools/call', { name, arguments: args }, undefined, searching);
    const found = JSON.stringify(await inSearch('find_tools', { query: 'search', limit: 20 }));
    assert.match(found, 'git__search');
    assert.match(JSON.stringify(await inSearch('describe_tool', { name: 'send' })), 'send');
    assert.is(textIn(await inSearch('call_tool', { name: 'send' })), 'mail send');
    assert.is(textIn(await inSearch('call_tool', { name: 'mail__search' })), 'mail search');
    assert.is(textIn(await inSearch('list', {})), 'git list');
  });
}

test('a client is notified when names change', async () => {
  const session = await openSession(app, '/mcp', { credentials: app.admin });
  await app.as(app.admin, 'POST', '/mcp', { body: rpc('tools/list'), headers: { ...MCP_TYPES, ...session } });
  const stream = await fetch(`${app.url}/mcp`, {
    headers: { ...app.admin, ...session, accept: 'text/event-stream' },
  });
  await app.serve('post', 'one', serving('post', ['send']));
  let text = '';
  for await (const chunk of stream.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes('notifications/tools/list_changed')) break;
  }
  assert.match(text, 'notifications/tools/list_changed');
});

test.run();

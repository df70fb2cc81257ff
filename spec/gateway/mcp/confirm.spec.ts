// Tools of a view whose calls their user confirms, for clients of both eras, over gateways with functions as backends.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { ANONYMOUS, type Principal } from '../../../src/domain/accounts/principal.ts';
import { asGatewayError } from '../../../src/domain/errors/errors.ts';
import { isJsonObject, type JsonObject } from '../../../src/domain/json/json.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import type { ViewDefinition } from '../../../src/domain/views/view.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { suite } from '../../helpers/suite.ts';
import { begin, modernRequest, openSession, postTo } from './post.ts';

const test = suite('calls that their user confirms');

const VIEW: ViewDefinition = {
  id: 'v',
  from: [{ template: 'a', rename: { drop: 'remove' } }, { template: 'rounds' }],
  confirm: ['remove', 'write'],
};
const FORM = { elicitation: {} };
const MINUTE_MS = 60_000;

let store: MemoryStore;
let gateway: Gateway;
let aheadMs: number;
/** The calls that reached a server: its template, and the call. */
let reached: string[];
const clock = { ...systemClock, wall: () => systemClock.wall() + aheadMs };
const stateKeys = [Buffer.alloc(32, 7)] as const;

test.before.each(async () => {
  store = new MemoryStore();
  aheadMs = 0;
  reached = [];
  gateway = await start();
  await gateway.views.put(VIEW);
});
test.after.each(() => gateway.close({ graceMs: 0 }));

async function start(): Promise<Gateway> {
  const made = await createGateway({ store, stateKeys, clock });
  const tools = { a: ['drop', 'read'], rounds: ['write'] };
  for (const [template, names] of Object.entries(tools))
    await made.register(
      template,
      {
        id: 'one',
        handler: ({ method, params }) => {
          if (method === 'tools/list')
            return { tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) };
          if (method !== 'tools/call') return {};
          const { name, arguments: args = null, requestState = null } = Object(params);
          reached.push(JSON.stringify([template, name, args, requestState]));
          if (template === 'rounds' && requestState === null) return ASKS;
          return { content: [{ type: 'text', text: 'done' }] };
        },
      },
      { waitMs: 5_000 },
    );
  return made;
}

/** What a server of the modern era answers that has a question of its own. */
const ASKS = {
  resultType: 'input_required',
  inputRequests: { sure: { method: 'elicitation/create', params: { message: '?', requestedSchema: {} } } },
  requestState: 'own state',
};

const ann: Principal = { ...ANONYMOUS, id: 'user:ann' };
const ben: Principal = { ...ANONYMOUS, id: 'user:ben' };

interface By {
  readonly at?: Gateway;
  readonly principal?: Principal;
  readonly capabilities?: JsonObject;
  readonly write?: (body: string) => string;
}

async function call(
  params: JsonObject,
  { at = gateway, principal = ann, capabilities = FORM, write }: By = {},
) {
  const meta = { 'io.modelcontextprotocol/clientCapabilities': capabilities };
  const { answer } = await postTo(at, {
    template: 'v',
    principal,
    ...modernRequest('tools/call', params, meta),
    ...(write && { write }),
  });
  return Object(answer.result ?? { error: answer.error });
}

const asked = (result: JsonObject) => Object(result.inputRequests).confirm?.params;
const textIn = (result: unknown): string => String(Object(result).content?.[0]?.text);
const answering = (result: JsonObject, action: string) => ({
  requestState: result.requestState ?? '',
  inputResponses: { confirm: { action } },
});
const REMOVE = { name: 'remove', arguments: { id: 7, why: 'old' } };

test('a modern client asks its user, with the tool and the arguments, and the call goes on once', async () => {
  const first = await call(REMOVE);
  assert.is(first.resultType, 'input_required');
  assert.equal(asked(first), {
    message: 'Call "remove" (drop of a) with these arguments? {"id":7,"why":"old"}',
    requestedSchema: { type: 'object', properties: {} },
  });
  assert.equal(reached, []);
  const yes = { ...REMOVE, ...answering(first, 'accept') };
  assert.is(textIn(await call(yes)), 'done');
  assert.equal(reached, ['["a","drop",{"id":7,"why":"old"},null]']);
  const again = await call(yes);
  assert.ok(asked(again), 'a second time it is asked again');
  assert.is(reached.length, 1);
  assert.is(textIn(await call({ name: 'read' })), 'done');
});

test('a tool that is called by its own name is asked, too', async () => {
  assert.ok(asked(await call({ ...REMOVE, name: 'drop' })));
});

test('the arguments of the call are those that the user saw, in any order', async () => {
  const first = await call(REMOVE);
  const answer = answering(first, 'accept');
  // Of two equal keys, servers differ in which one they read.
  const write = (body: string) => body.replace('{"id":7', '{"id":666,"id":7');
  const hidden = await call({ ...REMOVE, ...answer }, { write });
  assert.is(Object(hidden.error).code, -32602);
  assert.equal(reached, []);
  const reordered = { name: 'remove', arguments: { why: 'old', id: 7 }, ...answer };
  assert.is(textIn(await call(reordered)), 'done');
});

test('no is no: nothing reaches the server, and the answer counts', async () => {
  for (const action of ['decline', 'cancel']) {
    const first = await call(REMOVE);
    const no = await call({ ...REMOVE, ...answering(first, action) });
    assert.is(no.isError, true);
    assert.match(textIn(no), action === 'decline' ? 'declined' : 'did not confirm');
    assert.ok(asked(await call({ ...REMOVE, ...answering(first, 'accept') })), 'the state is used');
  }
  const first = await call(REMOVE);
  assert.ok(asked(await call({ ...REMOVE, requestState: first.requestState })), 'without an answer');
  assert.ok(asked(await call({ ...REMOVE, inputResponses: { confirm: { action: 'accept' } } })));
  assert.equal(reached, []);
});

test('a confirmation is for one caller, one tool and one set of arguments, for ten minutes', async () => {
  const first = await call(REMOVE);
  const yes = answering(first, 'accept');
  const codeOf = (result: { readonly error?: unknown }) => Object(result.error).code;
  assert.is(codeOf(await call({ ...REMOVE, arguments: { id: 8, why: 'old' }, ...yes })), -32602);
  assert.is(codeOf(await call({ ...REMOVE, ...yes }, { principal: ben })), -32602);
  assert.is(codeOf(await call({ name: 'write', arguments: REMOVE.arguments, ...yes })), -32602);
  aheadMs = 10 * MINUTE_MS + 1;
  assert.is(codeOf(await call({ ...REMOVE, ...yes })), -32602);
  aheadMs = 9 * MINUTE_MS;
  assert.equal(reached, []);
  // The name stands for another tool meanwhile.
  await gateway.views.put({ ...VIEW, from: [{ template: 'a', rename: { read: 'remove' } }] });
  assert.match(asked(await call({ ...REMOVE, ...yes })).message, 'read of a');
  assert.equal(reached, []);
});

test('the answer of the user counts after a call that was refused because of too many others', async () => {
  const limits = { remove: { calls_per_minute: 1 } };
  await gateway.views.put({ ...VIEW, limits });
  const [first, second] = [await call(REMOVE), await call(REMOVE)];
  assert.is(textIn(await call({ ...REMOVE, ...answering(first, 'accept') })), 'done');
  const yes = { ...REMOVE, ...answering(second, 'accept') };
  assert.is(Object((await call(yes)).error).data?.error_code, 'RATE_LIMIT_EXCEEDED');
  await gateway.views.put({ ...VIEW, limits: { remove: { calls_per_minute: 2 } } });
  assert.is(textIn(await call(yes)), 'done');
  assert.ok(asked(await call(yes)));
  assert.is(reached.length, 2);
});

test('it is used once on all nodes', async () => {
  const other = await start();
  const first = await call(REMOVE);
  const yes = { ...REMOVE, ...answering(first, 'accept') };
  assert.is(textIn(await call(yes, { at: other })), 'done');
  assert.ok(asked(await call(yes)));
  const second = await call(REMOVE);
  const both = { ...REMOVE, ...answering(second, 'accept') };
  const results = await Promise.all([call(both), call(both, { at: other })]);
  assert.is(results.filter((result) => textIn(result) === 'done').length, 1);
  assert.is(reached.length, 2);
  await other.close({ graceMs: 0 });
});

test('a call with a question of its server is confirmed once, and its states are used once', async () => {
  const first = await call({ name: 'write' });
  const second = await call({ name: 'write', ...answering(first, 'accept') });
  assert.ok(Object(second.inputRequests).sure);
  const replied = { name: 'write', requestState: second.requestState, inputResponses: { sure: {} } };
  assert.is(textIn(await call(replied)), 'done');
  assert.ok(asked(await call(replied)));
  assert.equal(reached, ['["rounds","write",null,null]', '["rounds","write",null,"own state"]']);
});

test('a client that cannot ask gets the result of a tool, a caller without MCP an error', async () => {
  for (const capabilities of [{}, { elicitation: { url: {} } }]) {
    const refused = await call(REMOVE, { capabilities });
    assert.equal([refused.resultType, refused.isError], ['complete', true]);
    assert.match(textIn(refused), 'needs confirmation');
  }
  const thrown = await gateway.call('v', 'remove').catch(asGatewayError);
  assert.equal([Object(thrown).code, Object(thrown).status], ['CONFIRMATION_REQUIRED', 403]);
  const headers = await openSession(gateway, 'v', ann);
  const message = { method: 'tools/call', params: REMOVE };
  const { answer } = await postTo(gateway, { template: 'v', principal: ann, headers, message });
  assert.is(Object(answer.result).isError, true);
  assert.match(textIn(answer.result), 'needs confirmation');
  assert.equal(reached, []);
});

/** A call in a session of a client that can ask; `reply` answers the question. */
async function legacyCall(params: JsonObject) {
  const headers = await openSession(gateway, 'v', ann, FORM);
  const post = { template: 'v', principal: ann, headers };
  const { reply } = begin(gateway, 'POST', { ...post, message: { id: 5, method: 'tools/call', params } });
  const messages = () => reply.opened?.messages ?? [];
  const find = async (isWanted: (message: JsonObject) => boolean) => {
    for (;;) {
      const found = messages().find(isWanted);
      if (found !== undefined) return found;
      await turn();
    }
  };
  const question = await find(({ method }) => method === 'elicitation/create');
  return {
    question: Object(question.params),
    reply: async (answer: JsonObject) => {
      const message = { id: question.id ?? null, ...answer };
      await postTo(gateway, { ...post, message: { ...message } });
      const { result } = await find(({ id }) => id === 5);
      return isJsonObject(result) ? result : {};
    },
  };
}

test('a legacy client is asked on the stream of the call', async () => {
  const forged = { requestState: 'x', inputResponses: { confirm: { action: 'accept' } } };
  const yes = await legacyCall({ ...REMOVE, ...forged });
  assert.match(yes.question.message, 'Call "remove" (drop of a)');
  assert.equal(reached, []);
  assert.is(textIn(await yes.reply({ result: { action: 'accept', content: {} } })), 'done');
  assert.is(reached.length, 1);
  for (const [answer, words] of [
    [{ result: { action: 'decline' } }, 'declined'],
    [{ result: { action: 'cancel' } }, 'did not confirm'],
    [{ result: {} }, 'did not confirm'],
    [{ error: { code: -1, message: 'no screen' } }, 'no screen'],
  ] as const) {
    const result = await (await legacyCall(REMOVE)).reply(answer);
    assert.is(result.isError, true);
    assert.match(textIn(result), words);
  }
  const late = await legacyCall(REMOVE);
  await gateway.views.put({ ...VIEW, from: [{ template: 'a', tools: ['read'] }] });
  const gone = await late.reply({ result: { action: 'accept' } });
  assert.equal([gone, reached.length], [{}, 1], 'the tool is no longer in the view');
});

test('the question has at most 1,000 bytes, and hides nothing in them', async () => {
  const hidden = '\u202e\n\u200b';
  const { message } = asked(await call({ name: 'remove', arguments: { hidden, long: 'ö'.repeat(900) } }));
  assert.ok(Buffer.byteLength(message) <= 1_000);
  assert.match(message, '{"hidden":"\\u202e\\n\\u200b","long":"ööö');
  assert.match(message, /ö… \(\d+ bytes of arguments are not shown\)$/);
});

test.run();

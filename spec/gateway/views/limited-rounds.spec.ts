// `calls_per_minute` of a view and calls that take several rounds: a call counts once, however often its server asks the client.

import * as assert from 'uvu/assert';
import { databaseUnavailable } from '../../../src/domain/errors/gateway-errors.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { CallCounts } from '../../../src/protocol/aggregate/views/view-limits.ts';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import { suite } from '../../helpers/suite.ts';
import { modernRequest, postTo } from '../mcp/post.ts';

const test = suite('limits of a view, and calls of several rounds');

const VIEW = { id: 'v', from: [{ template: 't' }], limits: { say: { calls_per_minute: 1 } } };
const META = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
const QUESTION = { method: 'elicitation/create', params: { message: '?', requestedSchema: {} } };
const YES = { action: 'accept', content: {} };

let store: MemoryStore;
let callLimiter: CallCounts;
let gateway: Gateway;
/** The questions that the server asks one after the other, and the state that it gives with each. */
let questions: readonly (readonly [key: string, state?: string | undefined])[];
/** The answers that came with each call of the server. */
let reached: string[];

const handler: InProcessHandler = ({ method, params }) => {
  if (method === 'tools/list') return { tools: [{ name: 'say', inputSchema: { type: 'object' } }] };
  if (method !== 'tools/call') return {};
  const { inputResponses = {}, requestState } = Object(params);
  reached.push([requestState ?? '-', ...Object.keys(inputResponses)].join(' '));
  const next = questions.find(([key]) => !Object.hasOwn(inputResponses, key));
  if (next === undefined) return { content: [{ type: 'text', text: 'done' }] };
  const [key, state] = next;
  return {
    resultType: 'input_required',
    inputRequests: { [key]: QUESTION },
    ...(state !== undefined && { requestState: state }),
  };
};

async function start(): Promise<Gateway> {
  const made = await createGateway({ store, callLimiter, stateKeys: [Buffer.alloc(32, 7)] });
  await made.register('t', { id: 'one', handler }, { waitMs: 5_000 });
  return made;
}

test.before.each(async () => {
  store = new MemoryStore();
  callLimiter = new CallCounts(systemClock);
  questions = [['sure', 'own']];
  reached = [];
  gateway = await start();
  await gateway.views.put(VIEW);
});
test.after.each(() => gateway.close({ graceMs: 0 }));

async function call(params: JsonObject = {}, at = gateway) {
  const request = modernRequest('tools/call', { name: 'say', ...params }, META);
  const { answer } = await postTo(at, { template: 'v', ...request });
  const { inputRequests, requestState, content } = Object(answer.result);
  const outcome = content?.[0]?.text ?? inputRequests ?? Object(answer.error).data?.error_code ?? answer;
  return { outcome, asked: Object.keys(Object(inputRequests)), requestState };
}

/** The next round, with the answers to these questions. */
const answering = ({ requestState }: { requestState?: string }, ...keys: string[]) => ({
  requestState,
  inputResponses: Object.fromEntries(keys.map((key) => [key, YES])),
});

test('a further round is not counted, whether the server has a state or not, and the next call is', async () => {
  for (const states of [['one', 'two'], []]) {
    questions = ['sure', 'really'].map((key, index) => [key, states[index]]);
    const first = await call();
    const second = await call(answering(first, 'sure'));
    assert.equal([first.asked, second.asked], [['sure'], ['really']]);
    assert.is((await call(answering(second, 'sure', 'really'))).outcome, 'done');
    assert.is((await call()).outcome, 'RATE_LIMIT_EXCEEDED');
    await gateway.close({ graceMs: 0 });
    callLimiter = new CallCounts(systemClock);
    gateway = await start();
  }
  assert.equal(reached, ['-', 'one sure', 'two sure really', '-', '- sure', '- sure really']);
});

test('a further round goes to any instance when the server has no state', async () => {
  questions = [['sure']];
  const first = await call();
  await gateway.register('t', { id: 'two', handler }, { waitMs: 5_000 });
  await gateway.deregister('t', 'one');
  assert.is((await call(answering(first, 'sure'))).outcome, 'done');
});

test('each state continues a call once, at whichever node; what a client writes itself continues none', async () => {
  const other = await start();
  const first = await call();
  const next = answering(first, 'sure');
  assert.is((await call(next, other)).outcome, 'done');
  assert.is((await call(next)).outcome, 'RATE_LIMIT_EXCEEDED');
  assert.is((await call({ inputResponses: next.inputResponses })).outcome, 'RATE_LIMIT_EXCEEDED');
  assert.equal(reached, ['-', 'own sure']);
  await other.close({ graceMs: 0 });
});

test('while the database does not answer, each round is counted', async () => {
  const first = await call();
  store.oauth.replace = () => Promise.reject(databaseUnavailable(undefined));
  assert.is((await call(answering(first, 'sure'))).outcome, 'RATE_LIMIT_EXCEEDED');
});

test('the rounds of a confirmed call count once, too', async () => {
  await gateway.views.put({ ...VIEW, confirm: ['say'] });
  const first = await call();
  const second = await call(answering(first, 'confirm'));
  assert.equal([first.asked, second.asked], [['confirm'], ['sure']]);
  assert.is((await call(answering(second, 'sure'))).outcome, 'done');
  const again = await call();
  assert.is((await call(answering(again, 'confirm'))).outcome, 'RATE_LIMIT_EXCEEDED');
});

test.run();

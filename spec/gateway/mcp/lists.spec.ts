// Notices to clients of all templates when templates and instances come and go, over a gateway with functions as backends:
// clients that may use the template get them, on the stream of either era, and no others.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import type { Principal } from '../../../src/domain/accounts/principal.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { serving, text } from '../../helpers/backends/function-backend.ts';
import { suite } from '../../helpers/suite.ts';
import type { RecordedReply } from '../../protocol/recorded-reply.ts';
import { answerIn, modernRequest, openSession, type Post, pass, send } from './post.ts';

const test = suite('lists of all templates of a gateway');
const CHANGED = 'notifications/tools/list_changed';
/** Longer than the second between two notices and the delay before one. */
const QUIET_MS = 1_300;

let gateway: Gateway;
test.before.each(async () => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  gateway = await createGateway();
  await add('a', 'one', 'read');
});
test.after.each(async () => {
  await gateway.close({ graceMs: 0 });
  // What is cancelled after the reset would take a timer of the next test with it.
  await pass(100);
  mock.timers.reset();
});

async function add(template: string, id: string, ...tools: readonly string[]) {
  const handler = serving(Object.fromEntries(tools.map((name) => [name, () => text(`${template} ${id}`)])));
  await gateway.register(template, { id, handler }, { waitMs: 5_000 });
}

const ALL: Principal = { id: 'user:all', kind: 'user', name: 'all', scopes: new Set(['tools:call']) };
const ONLY_A: Principal = { ...ALL, id: 'key:a', kind: 'api-key', templates: new Set(['a']) };

class Client {
  readonly #principal: Principal;
  #stream: RecordedReply | undefined;

  constructor(principal: Principal) {
    this.#principal = principal;
  }

  /** Opens a session and its stream. */
  async openLegacy() {
    const headers = await openSession(gateway, undefined, this.#principal);
    this.#stream = await this.#send('GET', { headers });
  }

  async openModern() {
    const notifications = { toolsListChanged: true };
    this.#stream = await this.#send('POST', modernRequest('subscriptions/listen', { notifications }));
  }

  /** The number of notices of changed tools. */
  get notices(): number {
    return (this.#stream?.events.messages ?? []).filter(({ method }) => method === CHANGED).length;
  }

  async tools(): Promise<string[]> {
    const { result } = answerIn(await this.#send('POST', modernRequest('tools/list')));
    return Object(result).tools.map(({ name }: { name: string }) => name);
  }

  async #send(method: 'GET' | 'POST', post: Omit<Post, 'template'>) {
    const reply = await send(gateway, method, { ...post, template: undefined, principal: this.#principal });
    await until(() => reply.isAnswered);
    return reply;
  }
}

/** Lets time pass until it is so. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await pass(10);
}

/** A client of each era that listens. */
async function listening(principal: Principal) {
  const [legacy, modern] = [new Client(principal), new Client(principal)];
  await Promise.all([legacy.openLegacy(), modern.openModern()]);
  return { modern, notices: () => [legacy.notices, modern.notices] };
}

test('notifies the clients that may use a template when it is added and removed', async () => {
  const [{ modern, notices }, barred] = [await listening(ALL), await listening(ONLY_A)];
  assert.equal(await modern.tools(), ['a__read']);
  await add('b', 'one', 'write');
  await until(() => notices().every((count) => count === 1));
  assert.equal(await modern.tools(), ['a__read', 'b__write']);
  await pass(QUIET_MS);
  await gateway.deregister('b', 'one');
  await until(() => notices().every((count) => count === 2));
  assert.equal(await modern.tools(), ['a__read']);
  await pass(QUIET_MS);
  assert.equal([...notices(), ...barred.notices()], [2, 2, 0, 0]);
  assert.equal(await barred.modern.tools(), ['a__read']);
});

test('notifies at most twice when many templates are added together', async () => {
  const { notices } = await listening(ALL);
  await Promise.all(Array.from({ length: 20 }, (_, number) => add(`t${number}`, 'one', 'read')));
  await until(() => notices().every((count) => count > 0));
  await pass(QUIET_MS);
  assert.ok(Math.max(...notices()) <= 2, 'one, and one for those that came later');
});

test('notifies when the instances of a template are replaced by others with other tools', async () => {
  const { modern, notices } = await listening(ALL);
  assert.equal(await modern.tools(), ['a__read']);
  await add('a', 'one', 'other');
  await until(() => notices().every((count) => count > 0));
  await pass(QUIET_MS);
  assert.equal(await modern.tools(), ['a__other']);
  await gateway.deregister('a', 'one');
  await pass(QUIET_MS);
  const before = notices();
  await add('a', 'two', 'third');
  await until(() => notices().every((count, index) => count > (before[index] ?? 0)));
  assert.equal(await modern.tools(), ['a__third']);
});

test('serves no list of a removed server in the name of its successor', async () => {
  const { modern } = await listening(ALL);
  const list = async () =>
    answerIn(await send(gateway, 'POST', { ...modernRequest('tools/list'), template: 'a' }));
  assert.ok((await list()).result);
  await gateway.deregister('a', 'one');
  await add('a', 'two', 'write');
  gateway.drain('a', 'two');
  assert.is((await list()).result, undefined);
  assert.equal(await modern.tools(), []);
});

test.run();

// Names that are used once and deleted, by the hundred: no object and no text of them remains.

import { setImmediate as turn } from 'node:timers/promises';
import { getHeapSnapshot, queryObjects } from 'node:v8';
import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../src/domain/accounts/principal.ts';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { serving, text } from '../helpers/backends/function-backend.ts';
import { collectGarbage } from '../helpers/garbage.ts';
import { suite } from '../helpers/suite.ts';
import { modernRequest, openSession, postTo, send } from './mcp/post.ts';

const test = suite('names used once', { timeoutMs: 120_000 });
let gateway: Gateway;
test.before.each(async () => {
  gateway = await createGateway();
});
test.after.each(() => gateway.close({ graceMs: 0 }));

/**
 * A template, its instance, its caller and the tool have a new name; it is called in both eras. It is not listed: lists in memory
 * have a bound of bytes, which these names do not reach.
 */
async function useOnce(name: string): Promise<void> {
  const handler = serving({ [name]: () => text(name) });
  await gateway.register(name, { id: name, handler }, { waitMs: 5_000 });
  const principal = { ...ANONYMOUS, id: name };
  const call = { method: 'tools/call', params: { name } };
  const headers = await openSession(gateway, name, principal);
  const answers = [
    await postTo(gateway, { template: name, message: call, headers, principal }),
    await postTo(gateway, { template: name, principal, ...modernRequest('tools/call', { name }) }),
    await postTo(gateway, {
      template: undefined,
      principal,
      ...modernRequest('tools/call', { name: `${name}__${name}` }),
    }),
  ];
  for (const { answer } of answers) assert.match(JSON.stringify(answer), name);
  await send(gateway, 'DELETE', { template: name, headers, principal });
  await gateway.deregister(name, name);
  await gateway.deleteTemplate(name);
}

/** The objects of the whole process after that. Unlike the bytes of its heap, their number has nothing of compiled code. */
async function objectsAfter(first: number, count: number): Promise<number> {
  for (let number = first; number < first + count; number += 1) await useOnce(`name-${number}`);
  for (let times = 0; times < 5; times += 1) {
    await turn();
    collectGarbage(); // what has a finalizer goes in the next collection
  }
  return queryObjects(Object, { format: 'count' });
}

/** How many of the names are in a text of the heap: a set or the keys of a map hold no objects, and few bytes. */
async function namesLeft(): Promise<number> {
  const names = new Set<string>();
  let rest = '';
  for await (const chunk of getHeapSnapshot()) {
    const text = `${rest}${chunk}`;
    for (const [name] of text.matchAll(/name-\d+/g)) names.add(name);
    rest = text.slice(-MAX_NAME_LENGTH);
  }
  return names.size;
}

const MAX_NAME_LENGTH = 'name-000'.length;
/** The engine keeps texts of its own for a while, such as the last one that a regular expression matched. */
const MAX_LEFT = 15;

test('names that were registered, used and deleted leave no object and no text', async () => {
  const before = await objectsAfter(0, 200);
  const perName = ((await objectsAfter(200, 300)) - before) / 300;
  assert.ok(perName < 0.5, `${perName} objects per name`);
  const left = await namesLeft();
  assert.ok(left < MAX_LEFT, `${left} of 500 names are left in texts`);
});

test.run();

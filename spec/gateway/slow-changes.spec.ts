// Work outside the store, such as looks at files and lists of servers, is done beside the queue of registry changes.

import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { MemoryStore } from '../../src/persistence/memory/memory-store.ts';
import { errorOf } from '../helpers/outcome.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('changes of the registry whose checks take long', { timeoutMs: 30_000 });

let gateway: Gateway;
test.before.each(async () => {
  gateway = await createGateway({ store: new MemoryStore() });
});
test.after.each(() => gateway.close({ graceMs: 0 }));

/** A program with thousands of texts that may be paths; the last word is refused. */
const exposing = {
  command: 'node',
  args: [...Array.from({ length: 200 }, (_, word) => `x${word}/${':a'.repeat(50)}`), '/proc/self/environ'],
};

const quick = () => gateway.register('quick', { id: 'a', handler: () => ({}) });

test('the paths of a command are looked at beside other changes', async () => {
  const ended: string[] = [];
  const refused = errorOf(gateway.register('programs', { id: 'a', ...exposing })).then(({ code }) =>
    ended.push(code),
  );
  await quick();
  assert.equal(ended, []);
  await refused;
  assert.equal([ended, gateway.templates()], [['COMMAND_NOT_ALLOWED'], ['quick']]);
});

test('the first list of a pinned template is waited for beside other changes', async () => {
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  let isSilent = false;
  const handler = async ({ method }: { readonly method: string }) => {
    if (method !== 'tools/list') return {};
    if (isSilent) {
      asked.resolve();
      await answered.promise;
    }
    return { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] };
  };
  await gateway.register('t', { id: 'a', handler }, { waitMs: 5_000 });
  isSilent = true;
  const pinned = gateway.changeTemplate('t', { approve: 'pinned' });
  await asked.promise;
  await quick();
  answered.resolve();
  await pinned;
  const states = await gateway.internals.approvals.states('t');
  assert.equal(
    states.map(({ tool, state }) => [tool, state]),
    [['echo', 'approved']],
  );
});

test.run();

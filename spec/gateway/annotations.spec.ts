// Annotations that an operator gives a tool, in a view or in the settings of a template: what is listed, what `only` takes, and which
// calls may be sent twice.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../src/domain/json.ts';
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('annotations of an operator', { timeoutMs: 30_000 });
const inputSchema = { type: 'object' };
const TOOLS = [
  { name: 'plain', inputSchema },
  { name: 'safe', inputSchema, annotations: { readOnlyHint: true } },
];
const WAIT = { waitMs: 5_000 };
let gateway: Gateway;

test.before.each(async () => {
  gateway = await createGateway();
  await register('slow', { stuck: () => new Promise<never>(() => {}), quick: () => ({ content: [] }) });
});
test.after.each(() => gateway.close({ graceMs: 0 }));

async function register(template: string, instances: Readonly<Record<string, () => unknown>>) {
  for (const [id, answer] of Object.entries(instances)) {
    const handler = ({ method }: { readonly method: string }) => {
      if (method === 'tools/list') return { tools: TOOLS };
      if (method === 'tools/call') return answer() as JsonObject;
      throw Object.assign(new Error('not offered'), { code: -32_601 });
    };
    await gateway.register(template, { id, handler }, WAIT);
  }
}

/** True when calls get an answer although one of two instances is silent: they were sent to both. */
async function isSentTwice(template: string, tool: string): Promise<boolean> {
  const outcomes = await Promise.allSettled([gateway.call(template, tool), gateway.call(template, tool)]);
  return outcomes.every(({ status }) => status === 'fulfilled');
}

async function view(annotate: object, more: object = {}): Promise<void> {
  const limits = Object.fromEntries(['plain', 'safe', 'renamed'].map((name) => [name, { timeout: 1.5 }]));
  await gateway.views.put({ id: 'desk', from: [{ template: 'slow', annotate, ...more }], limits } as never);
}

const listed = async (template: string) =>
  (await gateway.list(template, 'tools')).items.map(({ name, annotations = {} }) => [name, annotations]);

test('a call through a view is repeated as its annotations say, not as those of the server', async () => {
  await view({});
  assert.equal([await isSentTwice('desk', 'plain'), await isSentTwice('desk', 'safe')], [false, true]);
  await view({ plain: { idempotentHint: true }, safe: { readOnlyHint: false } });
  assert.equal([await isSentTwice('desk', 'plain'), await isSentTwice('desk', 'safe')], [true, false]);
  await view({ plain: { title: 'Plain' }, safe: { destructiveHint: false } });
  assert.equal([await isSentTwice('desk', 'plain'), await isSentTwice('desk', 'safe')], [false, true]);
});

test('a renamed tool is annotated by its new name, and `only` goes by its annotations', async () => {
  const rename = { plain: 'renamed' };
  await view({ renamed: { readOnlyHint: true } }, { rename, only: { readOnly: true } });
  assert.equal(
    (await listed('desk')).map(([name]) => name),
    ['renamed', 'safe'],
  );
  assert.ok(await isSentTwice('desk', 'plain'), 'called by its own name');
});

test.run();

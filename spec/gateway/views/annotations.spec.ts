// Annotations that an operator gives a tool, in a view or in the settings of a template: what is listed, what `only` takes, and which
// calls may be sent twice.

import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { suite } from '../../helpers/suite.ts';

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

test('a template annotates its tools: in its list, in those of views, and for repeats', async () => {
  await gateway.changeTemplate('slow', { timeout: 2, max_retries: 1 });
  await view({ safe: { title: 'Safe' } }, { only: { readOnly: true } });
  const safe = ['safe', { readOnlyHint: true }];
  assert.equal(await listed('slow'), [['plain', {}], safe]);
  assert.equal(await listed('desk'), [['safe', { readOnlyHint: true, title: 'Safe' }]]);
  const annotate = { plain: { readOnlyHint: true, title: 'Plain' }, safe: { readOnlyHint: false } };
  await gateway.changeTemplate('slow', { annotate });
  const plain = ['plain', { readOnlyHint: true, title: 'Plain' }];
  assert.equal(await listed('slow'), [plain, ['safe', { readOnlyHint: false }]]);
  assert.equal(await listed('desk'), [plain]);
  assert.equal([await isSentTwice('slow', 'plain'), await isSentTwice('slow', 'safe')], [true, false]);
  assert.ok(await isSentTwice('desk', 'plain'));
  await view({ safe: { readOnlyHint: true } });
  assert.ok(await isSentTwice('desk', 'safe'), 'the view goes before the template');
  await gateway.changeTemplate('slow', { annotate: null });
  assert.equal(await listed('slow'), [['plain', {}], safe]);
});

test.run();

// The largest views over the longest lists: what they cost is spread over several turns of the event loop.

import * as assert from 'uvu/assert';
import { ToolRights } from '../../../src/domain/accounts/rights.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { ViewDefinition } from '../../../src/domain/views/view.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { MemoryStore } from '../../../src/persistence/memory/memory-store.ts';
import { suite } from '../../helpers/suite.ts';
import { turnsOf } from '../../helpers/time/turns.ts';

const test = suite('globs of large views', { timeoutMs: 60_000 });

const TOOLS = 4_000;
const NAME = 'a'.repeat(40);
const GLOBS = Array.from({ length: 8 }, (_, index) => `*${'a?'.repeat(8)}b${index}*`);
/** At least: 4,000 names of 45 characters are 176 groups, 25 of which begin in one turn at most. */
const TURNS = 2;

let gateway: Gateway;
test.before(async () => {
  gateway = await createGateway({ store: new MemoryStore() });
  const tools = Array.from({ length: TOOLS }, (_, index) => ({
    name: `${NAME}_${1_000 + index}`,
    inputSchema: { type: 'object' },
  }));
  await gateway.register(
    'a',
    { id: 'one', handler: ({ method }) => (method === 'tools/list' ? { tools } : {}) },
    { waitMs: 5_000 },
  );
  await preview({}); // the list is stored then
});
test.after(() => gateway.close({ graceMs: 0 }));

const preview = (definition: Partial<ViewDefinition>, tools?: ToolRights) =>
  gateway.views.preview(
    { id: 'v', from: [{ template: 'a' }], ...definition },
    { id: 'ada', ...(tools && { tools }) },
  );

const VIEWS: Record<string, Partial<ViewDefinition>> = {
  /** They choose no tool, so that no names are made, which takes several turns, too. */
  tools: { from: [{ template: 'a', tools: GLOBS }] },
  confirm: { confirm: GLOBS },
  always: { mode: 'search', always: GLOBS },
};
for (const [what, definition] of Object.entries(VIEWS))
  test(`of ${what} take several turns, twice: what they choose and what they do not meet`, async () => {
    const plain = what === 'tools' ? 0 : await turnsOf(() => preview({}));
    const turns = await turnsOf(() => preview(definition));
    assert.ok(turns >= plain + 2 * TURNS - 1, `${turns} turns, ${plain} without globs`);
  });

test('of the rights of a caller take several turns', async () => {
  const rights = new ToolRights([GLOBS.map((glob) => `a/${glob}`)]);
  const plain = await turnsOf(() => preview({}));
  const turns = await turnsOf(() => preview({}, rights));
  assert.ok(turns >= plain + TURNS - 1, `${turns} turns, ${plain} without rights`);
});

test('of a view take several turns with the tools that are withheld', async () => {
  const turns = async (templates: readonly string[], inputSchema: JsonObject) => {
    const tools = Array.from({ length: 100 }, (_, index) => ({
      name: `${NAME.repeat(6)}_${index}`,
      inputSchema,
    }));
    const handler = ({ method }: { method: string }) => (method === 'tools/list' ? { tools } : {});
    for (const template of templates)
      await gateway.register(template, { id: 'one', handler }, { waitMs: 5_000 });
    const from = templates.map((template) => ({ template, tools: [...GLOBS, '*_??'] }));
    await gateway.views.put({ id: 'w', from });
    const listed = await gateway.views.tools('w'); // what is chosen of the lists is known then
    assert.is(listed.length, 90 * templates.length);
    return turnsOf(() => gateway.views.tools('w'));
  };
  const plain = await turns(['b1', 'b2', 'b3', 'b4', 'b5', 'b6', 'b7', 'b8'], { type: 'object' });
  // Names of 243 characters: 20 groups of each template.
  const withheld = await turns(['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8'], {
    type: 'object',
    properties: { a: { $ref: '#/$defs/none' } },
  });
  assert.ok(withheld > plain, `${withheld} turns, ${plain} without withheld tools`);
});

test('the problems are those of every glob', async () => {
  const { problems } = await preview({
    from: [{ template: 'a', tools: [...GLOBS.slice(1), '*_1000'] }],
    confirm: ['x', '*_1000'],
    always: ['y?'],
  });
  assert.equal(problems.map(({ code }) => code).sort(), [
    'always_unmet',
    'confirm_unmet',
    ...Array(7).fill('glob_unmet'),
  ]);
});

test.run();

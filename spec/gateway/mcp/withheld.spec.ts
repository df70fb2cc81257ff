// An odd item of one template, over a gateway with functions as backends: at `/mcp` it is repaired or withheld alone and reported;
// at the paths of its template it hides no others.

import * as assert from 'uvu/assert';
import type { Principal } from '../../../src/domain/accounts/principal.ts';
import type { GatewayEvents } from '../../../src/domain/events/events.ts';
import { RPC } from '../../../src/domain/mcp/jsonrpc.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { until } from '../../helpers/eventually.ts';
import { suite } from '../../helpers/suite.ts';
import { answerIn, modernRequest, openSession, postTo, send } from './post.ts';

const test = suite('withheld items of a gateway');

const inputSchema = { type: 'object' };
const ODD = [{ name: '' }, { name: 'null', title: null, inputSchema }, null, { name: 'bad\ud800' }];
const PRINCIPAL: Principal = { id: 'user:a', kind: 'user', name: 'a', scopes: new Set(['tools:call']) };

let gateway: Gateway;
let tools: unknown[];
test.before.each(async () => {
  gateway = await createGateway();
  tools = [...ODD, { name: 'fine', inputSchema }];
  const handler = () => ({ tools: tools as never });
  await gateway.register('odd', { id: 'one', handler }, { waitMs: 5_000 });
  await gateway.register(
    'good',
    { id: 'one', handler: () => ({ tools: [{ name: 'x', inputSchema }] }) },
    { waitMs: 5_000 },
  );
});
test.after.each(() => gateway.close({ graceMs: 0 }));

async function listedAt(template?: string): Promise<readonly string[]> {
  const post = { ...modernRequest('tools/list'), template, principal: PRINCIPAL };
  const reply = await send(gateway, 'POST', post);
  await until(() => reply.isAnswered);
  return Object(answerIn(reply).result)
    .tools.map((tool: unknown) => String(Object(tool)?.name))
    .sort();
}

test('lists everything else, and reports what is withheld once', async () => {
  const events: GatewayEvents['tool.withheld'][] = [];
  gateway.on('tool.withheld').subscribe((event) => events.push(event));
  for (let time = 0; time < 2; time += 1)
    assert.equal(await listedAt(), ['good__x', 'odd__fine', 'odd__null']);
  const withheld = [
    { list: 'tools', name: 'tools[0]', reason: 'its name is empty' },
    { list: 'tools', name: 'tools[2]', reason: 'it is not an object' },
    { list: 'tools', name: 'bad\ufffd', reason: 'its name is not valid Unicode' },
  ];
  assert.equal(
    events.map(({ atMs: _, ...fields }) => fields),
    withheld.map(({ list, name, reason }) => ({
      ...{ type: 'tool.withheld', template: 'odd', list, tool: name, reason, alias: 'tool.omitted' },
    })),
  );
  assert.equal(gateway.template('odd').withheld, withheld);
  assert.equal(gateway.template('good').withheld, []);
});

test('reports an item again for another reason, and forgets a template that was removed', async () => {
  await listedAt();
  const reasons: string[] = [];
  gateway.on('tool.withheld').subscribe(({ reason }) => reasons.push(reason));
  tools = [{ name: 'fine', inputSchema }, { title: 'no name' }, 5];
  await gateway.deregister('odd', 'one');
  assert.equal(await listedAt(), ['good__x']);
  await gateway.register('odd', { id: 'two', handler: () => ({ tools: tools as never }) }, { waitMs: 5_000 });
  assert.equal(await listedAt(), ['good__x', 'odd__fine']);
  assert.equal(reasons, ['its name is missing, or is not text']);
  assert.equal(gateway.template('odd').withheld.length, 2);
});

test('an odd item hides no others at the paths of its template', async () => {
  tools = [
    null,
    5,
    { name: 7 },
    { name: 'x', inputSchema: { properties: { a: null, b: true } } },
    { title: 'none' },
  ];
  const { items } = await gateway.list('odd', 'tools');
  assert.equal(
    items.map(({ name }) => name),
    [7, 'x', undefined],
  );
  assert.is((await listedAt('odd')).length, 5, 'passed on as it is');
});

test('a session that calls a tool without approval is answered, and others are served meanwhile', async () => {
  await gateway.changeTemplate('good', { approve: 'pinned' });
  const headers = await openSession(gateway, 'good');
  for (const name of ['unknown', 'unknown', 'x']) {
    const message = { method: 'tools/call', params: { name } };
    const { answer } = await postTo(gateway, { template: 'good', message, headers });
    assert.equal([name, Object(answer.error).code], [name, name === 'x' ? undefined : RPC.invalidParams]);
  }
});

test.run();

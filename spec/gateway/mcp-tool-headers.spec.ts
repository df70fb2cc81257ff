// Tools of a real HTTP server that want arguments repeated in headers, through a gateway as clients of the modern era find
// it: which of them are listed, and what the log says of the others.

import * as assert from 'uvu/assert';
import { suite } from '../helpers/suite.ts';
import { REGION, tool } from '../transports/http/tool-headers-harness.ts';
import { ToolHeadersGateway } from './tool-headers-gateway.ts';

const test = suite('tools with headers, through a gateway');
let harness: ToolHeadersGateway;
test.before.each(async () => {
  harness = await ToolHeadersGateway.open();
});
test.after.each(() => harness.close());

const bad = (type: string) => tool('bad', { secret: { type, 'x-mcp-header': 'Secret' } });
const good = tool('one', { region: REGION });
const BAD = 'a header is asked for "secret", which is no string, integer or boolean';
const WORSE = 'a header is asked for at "items.secret", where no single argument is';

test('a tool that may not be called is in no list, and in the log once', async () => {
  harness.backend.pages = [[good, bad('object')]];
  await harness.register('a');
  for (const client of ['ann', 'bob', 'cid']) assert.equal(await harness.listed(client), ['one'], client);
  assert.ok(harness.backend.lists >= 4, 'each client asked the server');
  const fields = { template: 't', instance_id: 'a', server_id: 'a', tool: 'bad', reason: BAD };
  assert.equal(harness.warnings, [['tool is omitted from all lists: clients must not call it', fields]]);
});

test('it is in the log again for another reason, after it was right, and of another instance', async () => {
  harness.backend.pages = [[good, bad('object')]];
  await harness.register('a');
  const { inputSchema = {} } = bad('string');
  harness.backend.pages = [[good, { name: 'bad', inputSchema: { items: inputSchema } }]];
  assert.equal(await harness.listed('ann'), ['one']);
  harness.backend.pages = [[good, bad('string')]];
  assert.equal(await harness.listed('bob'), ['one', 'bad']);
  harness.backend.pages = [[good, bad('object')]];
  assert.equal(await harness.listed('cid'), ['one']);
  await harness.register('b');
  assert.equal(harness.reasons, [`a: ${BAD}`, `a: ${WORSE}`, `a: ${BAD}`, `b: ${BAD}`]);
});

test('it is not in the log again because its instance begins anew', async () => {
  harness.backend.pages = [[good, bad('object')]];
  await harness.register('a');
  const { lists } = harness.backend;
  await harness.restart('a');
  assert.ok(harness.backend.lists > lists);
  assert.equal(harness.reasons, [`a: ${BAD}`]);
});

test('its arguments are in no log line and no event', async () => {
  const secret = 'k9-argument-k9';
  harness.backend.pages = [[good, bad('object')]];
  await harness.register('a');
  for (const name of ['bad', 'one'])
    await harness.call('ann', name, { secret, region: secret }, { region: secret });
  await harness.listed('ann');
  const told = JSON.stringify([harness.lines, harness.events]);
  assert.match(told, BAD.replaceAll('"', '\\"'));
  assert.not.match(told, secret);
});

test.run();

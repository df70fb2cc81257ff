// Tools of a real HTTP server that want arguments repeated in headers, as clients of the modern era use them through a gateway: which
// of them are listed, what the log says of the others, and tools whose headers change without a notice.

import * as assert from 'uvu/assert';
import { suite } from '../helpers/suite.ts';
import { REGION, tool } from '../transports/http/tool-headers-harness.ts';
import { type Answered, ToolHeadersGateway } from './tool-headers-gateway.ts';

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

const ZONED = tool('one', { region: { ...REGION, 'x-mcp-header': 'Zone' } });
const ARGS = { region: 'x' };
const outcome = ({ status, message }: Answered) => [status, Object(message.error).code];
const SERVED = [200, undefined];
const REFUSED = [400, -32020];

for (const [path, template, name] of [
  ['the path of the template', 't', 'one'],
  ['the path of all templates', undefined, 't__one'],
] as const) {
  const call = (headers: Record<string, string>) => harness.call('ann', name, ARGS, headers);

  test(`a client that knows is served at once (${path})`, async () => {
    await harness.register('a');
    harness.template = template;
    harness.backend.pages = [[ZONED]];
    const { lists } = harness.backend;
    assert.equal(outcome(await call({ zone: 'x' })), SERVED);
    assert.equal(
      harness.backend.calls.map((headers) => headers['mcp-param-zone']),
      ['x'],
    );
    assert.is(harness.backend.lists, lists + 1);
    assert.equal(outcome(await call({ zone: 'x' })), SERVED);
    assert.is(harness.backend.lists, lists + 1, 'whoever says the right thing costs no list');
  });

  test(`a client that does not know is refused, lists again, and is served (${path})`, async () => {
    await harness.register('a');
    harness.template = template;
    assert.equal(await harness.headersOf('ann', name), ['Region']);
    harness.backend.pages = [[ZONED]];
    assert.equal(await harness.headersOf('ann', name), ['Region'], 'lists come from memory for a while');
    assert.equal(outcome(await call({ zone: 'x' })), SERVED);
    assert.equal(outcome(await call({ region: 'x' })), REFUSED);
    assert.equal(await harness.headersOf('ann', name), ['Zone']);
    assert.equal(outcome(await call({ zone: 'x' })), SERVED);
    assert.is(harness.events.filter(({ type }) => type === 'tools.changed').length, 1);
  });
}

test('a header that is wrong by every list is refused, and costs one list however often it comes', async () => {
  await harness.register('a');
  const { lists } = harness.backend;
  const wrong = () => harness.call('ann', 'one', ARGS, { region: 'y' });
  const together = await Promise.all(Array.from({ length: 20 }, wrong));
  assert.equal([...together, await wrong()].map(outcome), Array(21).fill(REFUSED));
  assert.equal([harness.backend.lists, harness.backend.calls.length], [lists + 1, 0]);
  assert.is(harness.events.filter(({ type }) => type === 'tools.changed').length, 0);
});

test('a client that knows is served while another instance lists the tool as before', async () => {
  await harness.register('a');
  const other = await harness.another();
  await harness.register('b', other);
  other.backend.pages = [[ZONED]];
  for (const headers of [{ zone: 'x' }, { region: 'x' }]) {
    assert.equal(outcome(await harness.call('ann', 'one', ARGS, headers)), SERVED);
  }
});

test('a client that knows is served when no instance asks for headers any more', async () => {
  await harness.register('a');
  harness.backend.pages = [[tool('one', { region: { type: 'string' } })]];
  assert.equal(outcome(await harness.call('ann', 'one', ARGS, {})), SERVED);
});

test.run();

// A real HTTP server asks for other headers than before and tells nobody: what becomes of clients that know already, and of
// those that do not, at the path of the template and at that of all.

import * as assert from 'uvu/assert';
import { suite } from '../helpers/suite.ts';
import { REGION, tool } from '../transports/http/tool-headers-harness.ts';
import { type Answered, ToolHeadersGateway } from './tool-headers-gateway.ts';

const test = suite('tools that change silently, through a gateway');
let harness: ToolHeadersGateway;
test.before.each(async () => {
  harness = await ToolHeadersGateway.open();
  await harness.register('a');
});
test.after.each(() => harness.close());

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
  const { lists } = harness.backend;
  const wrong = () => harness.call('ann', 'one', ARGS, { region: 'y' });
  const together = await Promise.all(Array.from({ length: 20 }, wrong));
  assert.equal([...together, await wrong()].map(outcome), Array(21).fill(REFUSED));
  assert.equal([harness.backend.lists, harness.backend.calls.length], [lists + 1, 0]);
  assert.is(harness.events.filter(({ type }) => type === 'tools.changed').length, 0);
});

test('a client that knows is served while another instance lists the tool as before', async () => {
  const other = await harness.another();
  await harness.register('b', other);
  other.backend.pages = [[ZONED]];
  for (const headers of [{ zone: 'x' }, { region: 'x' }]) {
    assert.equal(outcome(await harness.call('ann', 'one', ARGS, headers)), SERVED);
  }
});

test('a client that knows is served when no instance asks for headers any more', async () => {
  harness.backend.pages = [[tool('one', { region: { type: 'string' } })]];
  assert.equal(outcome(await harness.call('ann', 'one', ARGS, {})), SERVED);
});

test.run();

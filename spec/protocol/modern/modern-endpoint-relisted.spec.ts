// What becomes of a call of the modern era whose headers an old list would refuse, from when it came to when it is made.

import * as assert from 'uvu/assert';
import { rateLimitExceeded } from '../../../src/domain/error-catalogue.ts';
import type { Tool } from '../../../src/domain/mcp.ts';
import { suite } from '../../helpers/suite.ts';
import { RecordedReply } from '../recorded-reply.ts';
import { headersFor, KEY, modernHarness, outcomeOf, VERSION } from './modern-harness.ts';

const test = suite('modern endpoint, tools that are listed again');

/** A harness whose only tool asks for a header, and lists it when the spec says so. */
function relistingHarness() {
  const harness = modernHarness();
  const asking = (header: string): Tool => ({
    name: 'add',
    inputSchema: { type: 'object', properties: { a: { type: 'integer', 'x-mcp-header': header } } },
  });
  harness.backends.tools.set('add', asking('Old'));
  const { promise, resolve } = Promise.withResolvers<readonly Tool[]>();
  harness.backends.onRelist = () => promise;
  const reply = new RecordedReply();
  const params = {
    name: 'add',
    arguments: { a: 1 },
    _meta: { [KEY.version]: VERSION, [KEY.capabilities]: {} },
  };
  const body = { jsonrpc: '2.0', id: 9, method: 'tools/call', params };
  const headers = { ...headersFor('tools/call', params), 'mcp-param-new': '1' };
  const handle = () => harness.handle({ method: 'POST', body, headers }, reply);
  return { harness, reply, handle, list: (header: string) => resolve([asking(header)]) };
}

test('a call that an old list would refuse waits for a new one, and is charged when it may be made', async () => {
  for (const charge of [() => {}, () => Promise.resolve()]) {
    const { harness, reply, handle, list } = relistingHarness();
    harness.charge = charge;
    const handled = handle();
    assert.equal([harness.backends.exchanges.length, harness.charges], [0, []]);
    list('New');
    await handled;
    assert.equal([harness.backends.exchanges.length, harness.charges], [1, [1]]);
    harness.backends.last.result({ resultType: 'complete' });
    assert.is(outcomeOf(reply), '200');
  }
});

test('a call that a new list refuses, too, is refused under its id, and costs nothing', async () => {
  const { harness, reply, handle, list } = relistingHarness();
  list('Other');
  await handle();
  assert.equal([outcomeOf(reply), reply.message.id], ['400 -32020', 9]);
  assert.equal([harness.backends.exchanges.length, harness.charges], [0, []]);
});

test('a call whose client left while the tools were listed is not made', async () => {
  const { harness, reply, handle, list } = relistingHarness();
  const handled = handle();
  reply.lose();
  list('New');
  await handled;
  assert.equal([reply.isAnswered, harness.backends.exchanges.length, harness.charges], [false, 0, []]);
});

test('whoever is over the limit hears of it after his headers were found right', async () => {
  const { harness, reply, handle, list } = relistingHarness();
  harness.charge = () => {
    throw rateLimitExceeded(60, 5);
  };
  list('New');
  await handle();
  assert.equal([reply.status, reply.message.id, harness.backends.exchanges.length], [429, 9, 0]);
});

test.run();

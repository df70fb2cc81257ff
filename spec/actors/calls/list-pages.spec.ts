// Gathering a list page by page, from backends that are honest, careless or endless.
// The pages are made up here; real ones are in the specs of the transports.

import * as assert from 'uvu/assert';
import { gatherPages } from '../../../src/actors/calls/requests.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { ExchangeRequest } from '../../../src/domain/exchange.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('list pages');

/** Answers with one page after the other and writes down what it was asked. */
function book(...pages: unknown[]) {
  const asked: ExchangeRequest[] = [];
  const ask = async (request: ExchangeRequest): Promise<unknown> => {
    asked.push(request);
    return pages[asked.length - 1];
  };
  return { asked, ask };
}

const tool = (name: string) => ({ name });

async function failure(promise: Promise<unknown>): Promise<GatewayError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof GatewayError) return thrown;
  throw new Error('it did not fail as it should');
}

test('follows an empty cursor, which is one like any other', async () => {
  const { ask, asked } = book({ tools: [tool('a')], nextCursor: '' }, { tools: [tool('b')] });
  assert.equal(await gatherPages('tools', ask), [tool('a'), tool('b')]);
  assert.equal(asked[1]?.params, { cursor: '' });
});

test('drops what is no object, and a field that is no list', async () => {
  const { ask } = book({ tools: [tool('a'), null, 'b', 3, [tool('c')]], nextCursor: '2' }, { tools: 'none' });
  assert.equal(await gatherPages('tools', ask), [tool('a')]);
});

test('refuses a cursor that repeats, also one from further back', async () => {
  const { ask, asked } = book(
    { tools: [tool('a')], nextCursor: 'x' },
    { tools: [tool('b')], nextCursor: 'y' },
    { tools: [tool('a')], nextCursor: 'x' },
  );
  const error = await failure(gatherPages('tools', ask));
  assert.is(error.code, 'BACKEND_UNAVAILABLE');
  assert.is(error.delivered, 'unknown');
  assert.match(error.message, 'its cursor repeats');
  assert.is(asked.length, 3);
});

test('ends after the last page it may ask for', async () => {
  let pages = 0;
  const ask = async () => {
    pages += 1;
    return { tools: [], nextCursor: String(pages) };
  };
  const error = await failure(gatherPages('tools', ask));
  assert.match(error.message, `more than ${LIMITS.listPages} pages`);
  assert.is(pages, LIMITS.listPages);
});

test('does not ask for more when it has more than enough items', async () => {
  const { ask, asked } = book({
    tools: Array.from({ length: LIMITS.listItems + 1 }, () => ({})),
    nextCursor: '2',
  });
  const error = await failure(gatherPages('tools', ask));
  assert.match(error.message, `more than ${LIMITS.listItems} items`);
  assert.is(asked.length, 1);
});

test('takes a page of 200,000 items without running out of stack', async () => {
  const { ask } = book({ tools: Array.from({ length: 200_000 }, (_, index) => ({ index })) });
  const items = await gatherPages('tools', ask);
  assert.is(items.length, 200_000);
  assert.equal(items.at(-1), { index: 199_999 });
});

test.run();

// Lists whose answer is an array: long ones are written in several turns of the event loop.

import * as assert from 'uvu/assert';
import { pagedList } from '../../src/http/paged-list.ts';
import { suite } from '../helpers/suite.ts';
import { TurnCounter } from '../helpers/turns.ts';

const test = suite('lists of records');

test('a list of 6 MiB is written in several turns, and is the JSON of its records', async () => {
  const records = Array.from({ length: 60 }, (_, n) => ({ id: String(100 + n), text: 'é'.repeat(50_000) }));
  const turns = new TurnCounter();
  const recordOf = (record: object) => {
    turns.note();
    return record;
  };
  const reply = await pagedList('records', records, {}, ({ id }) => id, recordOf);
  assert.ok(turns.fullest < 20, `${turns.fullest} records in one turn`);
  assert.equal(reply.kind === 'bytes' && JSON.parse(String(reply.bytes)), records);
});

test('an empty list, and a page, are arrays', async () => {
  const texts = await Promise.all(
    [[], ['a'], ['a', 'b', 'c']].map((items) =>
      pagedList(
        'records',
        items,
        { limit: 2 },
        (id) => id,
        (id) => ({ id }),
      ),
    ),
  );
  assert.equal(
    texts.map((reply) => reply.kind === 'bytes' && String(reply.bytes)),
    ['[]', '[{"id":"a"}]', '[{"id":"a"},{"id":"b"}]'],
  );
});

test.run();

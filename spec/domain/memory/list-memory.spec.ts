// The memory of lists that are read and answered: which list is refused for its values, and which page is cut while it waits to be parsed.

import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/accounts/account.ts';
import { JsonText } from '../../../src/domain/json/json.ts';
import { HeldBytes, memoryBounds, memoryOf } from '../../../src/domain/memory/held-bytes.ts';
import { ListMemory, type ListValues } from '../../../src/domain/memory/list-memory.ts';
import { codeOf, thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the memory of lists');
/** Memory of this many values without text. */
const bytesOf = (values: number) => memoryOf(values, 0);

test('lets a caller have one list of any size, or several within its share, and no more than all may have', async () => {
  const memory = new ListMemory({ bounds: { totalBytes: bytesOf(100), ownerBytes: bytesOf(25) } });
  const isRefused = (list: ListValues, values: number) =>
    codeOf(() => list.add(values, 0)).then((code) => code === 'QUEUE_FULL');
  const large = memory.open('a');
  large.add(60, 0);
  assert.ok(await isRefused(memory.open('a'), 1));
  large.add(10, 0); // another page of the same list
  assert.ok(await isRefused(large, 31));
  assert.ok(await isRefused(memory.open('b'), 31));
  memory.open('b').add(10, 0);
  memory.open('b').add(10, 0);
  assert.ok(await isRefused(memory.open('b'), 10));
  large.release();
  large.release();
  memory.open('a').add(60, 0);
});

test('knows no shares without authentication, when all callers are one', async () => {
  const memory = new ListMemory({ bounds: { totalBytes: bytesOf(100), ownerBytes: bytesOf(25) } });
  for (let index = 0; index < 4; index += 1) memory.open(ANONYMOUS.id).add(25, 0);
  assert.is(await codeOf(() => memory.open(ANONYMOUS.id).add(1, 0)), 'QUEUE_FULL');
});

test('counts pages for their instance until they are parsed, and cuts one that is needed for others', async () => {
  const answers = new HeldBytes({ totalBytes: 100, ownerBytes: 60 }, () => 0);
  const memory = new ListMemory({ answers });
  const due: (() => void)[] = [];
  const scheduler = { turn: () => new Promise<void>((resolve) => due.push(resolve)) };
  const page = (bytes: number) => {
    const result = JsonText.ofBytes(Buffer.alloc(bytes, ' '));
    return memory.turn({ event: { kind: 'result', result }, instanceId: 'i', serverId: 's' }, scheduler);
  };
  const [larger, smaller] = [thrownBy(page(40)), page(30)];
  assert.match(String(await larger), 'memory limit');
  assert.is(answers.bytes, 30);
  for (const resolve of due) resolve();
  await smaller;
  assert.is(answers.bytes, 0);
});

test('has room for one list of the greatest size in a small process, and an eighth of a large one', () => {
  const [small, large] = [memoryBounds(1024 ** 3).lists, memoryBounds(64 * 1024 ** 3).lists];
  assert.ok(small.totalBytes >= 80_000_000 && small.totalBytes < 1024 ** 3 / 4, String(small.totalBytes));
  assert.equal(large, { totalBytes: 8 * 1024 ** 3, ownerBytes: 2 * 1024 ** 3 });
});

test.run();

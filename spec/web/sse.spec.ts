// The event streams that the console reads: whole events, however the bytes arrive.

import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { readEvents, type ServerEvent } from '../../web/src/sse.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('event streams of the console');

async function eventsOf(chunks: readonly Uint8Array[]): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of readEvents(ReadableStream.from(chunks))) events.push(event);
  return events;
}

test('reads names, ids and data of several lines, and skips comments', async () => {
  const text =
    ': keep-alive\n\nevent: instance.healthy\nid: run-7\ndata: {"a":\ndata: 1}\n\ndata: x\r\n\r\nevent: empty\n\n';
  assert.equal(await eventsOf([new TextEncoder().encode(text)]), [
    { name: 'instance.healthy', id: 'run-7', data: '{"a":\n1}' },
    { name: 'message', id: undefined, data: 'x' },
  ]);
});

test('reads the same events from any pieces', async () => {
  const bytes = new TextEncoder().encode('event: a\ndata: ä€😀\n\nevent: b\nid: 2\ndata: two\n\n');
  const expected = await eventsOf([bytes]);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length)), async (cuts) => {
      const ends = [...new Set([0, ...cuts, bytes.length])].sort((one, other) => one - other);
      const chunks = ends.slice(1).map((end, index) => bytes.slice(ends[index], end));
      assert.equal(await eventsOf(chunks), expected);
    }),
    { numRuns: 200 },
  );
});

test('stops reading when its reader stops', async () => {
  let isCancelled = false;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode('data: again\n\n')),
    cancel: () => {
      isCancelled = true;
    },
  });
  for await (const { data } of readEvents(endless)) {
    assert.is(data, 'again');
    break;
  }
  assert.ok(isCancelled);
});

test.run();

import * as assert from 'uvu/assert';
import { commentText, EVENT_STREAM_HEADERS, inLines } from '../../src/http/sse/server-sent-events.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the text of server-sent events');

test('forbids everybody on the way to keep, hold back or compress a stream', () => {
  assert.equal(EVENT_STREAM_HEADERS, [
    ...['Content-Type', 'text/event-stream', 'Cache-Control', 'no-store, no-transform'],
    ...['X-Accel-Buffering', 'no'],
  ]);
});

test('has comments that nobody reads', () => {
  assert.is(commentText('still here'), ': still here\n\n');
});

test('leaves data on one line as it is, and repeats data: for further ones', () => {
  const bytes = Buffer.from('{"a":"ü"}');
  assert.is(inLines(bytes), bytes);
  assert.is(inLines('{}'), '{}');
  assert.is(inLines('{\r\n"a":\r1\n}'), '{\ndata: "a":\ndata: 1\ndata: }');
  assert.equal(inLines(Buffer.from('["ü",\n1]')), Buffer.from('["ü",\ndata: 1]'));
});

test.run();

// Whose answer a broken message was: found where it can be, never guessed.

import * as assert from 'uvu/assert';
import { exchangeOfOversize, idsOfBrokenAnswer } from '../../src/transports/stdio/correlator.ts';
import { EDGE_BYTES } from '../../src/transports/stdio/line-decoder.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('broken answer');

test('finds the id of an answer that breaks the rules', () => {
  const broken: readonly (readonly [string, readonly number[]])[] = [
    ['{"jsonrpc":"2.0","id":5}', [5]],
    ['{"result":{},"jsonrpc":"1.0","id":5}', [5]],
    ['{"id":5,"result":{}}', [5]],
    ['{"id":5,"error":{"code":1,"message":"x"}}', [5]],
    ['[{"jsonrpc":"2.0","id":5,"result":{}},{"jsonrpc":"2.0","id":6,"result":{}}]', [5, 6]],
    ['{"jsonrpc":"2.0","id":5,"result":{"cut of', [5]],
    ['{ "id": 5, "result": {"cut of', [5]],
  ];
  for (const [line, ids] of broken) assert.equal(idsOfBrokenAnswer(Buffer.from(line)), ids, line);
});

test('finds both ids when an answer broke off and the next one follows on the same line', () => {
  const line = '{"jsonrpc":"2.0","id":1,"result":{"content":["half{"result":{},"jsonrpc":"2.0","id":2}';
  assert.equal(idsOfBrokenAnswer(Buffer.from(line)), [1, 2]);
});

test('finds no id in what is no answer', () => {
  const lines = [
    'Server listening on stdio',
    '',
    '{ half an object',
    '[1, 2',
    '42',
    '{"level":30,"id":5,"msg":"a log line"}',
    '{"level":50,"id":5,"error":"a log line"}',
    '{"jsonrpc":"1.0","id":5,"method":"ping"}',
    '{"jsonrpc":"2.0","id":"5"}',
    '{"result":{"id":5,"cut of',
  ];
  for (const line of lines) assert.equal(idsOfBrokenAnswer(Buffer.from(line)), [], line);
});

test('finds the owner of an oversize line at its head or its tail', () => {
  const filler = `{"text":"${'x'.repeat(2 * EDGE_BYTES)}","id":9}`;
  const lines: readonly (readonly [string, number | 'none' | 'unknown'])[] = [
    [`{"result":${filler},"jsonrpc":"2.0","id":5}`, 5],
    [`{"result":${filler}, "id": 5, "jsonrpc": "2.0" }\r`, 5],
    [`{"jsonrpc":"2.0","id":5,"result":${filler}}`, 5],
    [`{"id":5,"jsonrpc":"2.0","result":${filler}}`, 5],
    [`{"result":${filler},"id":5}`, 'unknown'],
    [filler, 'unknown'],
    ['x'.repeat(2 * EDGE_BYTES), 'unknown'],
    [`{"method":"notifications/message","params":${filler},"jsonrpc":"2.0"}`, 'none'],
    [`{"jsonrpc":"2.0","method":"notifications/message","params":${filler}}`, 'none'],
    [`{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":${filler}}`, 'none'],
    [`{"method":"x","params":${filler},"jsonrpc":"2.0","id":5}`, 'none'],
  ];
  for (const [line, owner] of lines) {
    const bytes = Buffer.from(line);
    const edges = {
      head: bytes.subarray(0, EDGE_BYTES),
      tail: bytes.subarray(-EDGE_BYTES),
      bytes: bytes.length,
      isCut: false,
    };
    assert.is(exchangeOfOversize(edges), owner, line.slice(0, 60));
  }
});

test('is not taken in by text that looks like the end of a message', () => {
  const text = JSON.stringify(`${'x'.repeat(EDGE_BYTES)},"jsonrpc":"2.0","id":1}`);
  const line = Buffer.from(`{"result":{"text":${text}},"jsonrpc":"2.0","id":5}`);
  assert.is(
    exchangeOfOversize({
      head: line.subarray(0, EDGE_BYTES),
      tail: line.subarray(-EDGE_BYTES),
      bytes: 1,
      isCut: false,
    }),
    5,
  );
});

test.run();

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { isJsonObject, parseExact } from '../../../src/domain/json/json.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import {
  type BackendMessage,
  idValue,
  RPC,
  readBatch,
  readId,
  readMessage,
} from '../../../src/domain/mcp/jsonrpc.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('JSON-RPC messages');

/** A message with the bytes of its result as text, so that two messages can be compared. */
function read(text: string | Buffer) {
  return plain(readMessage(Buffer.from(text)));
}

function plain(message: BackendMessage | undefined) {
  if (message?.kind !== 'result') return message;
  return { kind: 'result', id: message.id, result: Buffer.from(message.result.bytes).toString() };
}

/** The two key orders that SDKs write. */
const ORDERS = {
  'result first': (id: unknown, result: string) =>
    `{"result":${result},"jsonrpc":"2.0","id":${JSON.stringify(id)}}`,
  'id first': (id: unknown, result: string) =>
    `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`,
};

for (const [order, write] of Object.entries(ORDERS)) {
  test(`may have ids of any type and white space at the end, ${order}`, () => {
    for (const id of ['7', -1, 1.5, Number.MAX_SAFE_INTEGER, 1e21])
      assert.equal(read(write(id, '{}')), { kind: 'result', id, result: '{}' });
    for (const end of ['\r\n', '\n', '  ', ' \t\r\n'])
      assert.equal(read(write(4, '{"a":1}') + end), { kind: 'result', id: 4, result: '{"a":1}' });
  });
}

test('may begin with a byte order mark', () => {
  for (const write of Object.values(ORDERS))
    assert.equal(read(`\ufeff${write(1, '{}')}`), { kind: 'result', id: 1, result: '{}' });
  assert.is(read('\ufeff{"jsonrpc":"2.0","method":"a"}')?.kind, 'notification');
  for (const text of ['\ufeff', '\ufeff\ufeff{}', 'ï»¿', '']) assert.is(read(text), undefined);
});

test('share the bytes of a result without a copy', () => {
  const bytes = Buffer.from(ORDERS['result first'](1, '{"a":1}'));
  const message = readMessage(bytes);
  assert.is(message?.kind === 'result' && message.result.bytes.buffer, bytes.buffer);
});

test('have a copy of a result that is a small part of a large buffer', () => {
  const text = `{"jsonrpc":"2.0","id":1,"other":"${'x'.repeat(60_000)}","result":{"tools":[]}}`;
  const message = readMessage(Buffer.from(text));
  const bytes = message?.kind === 'result' ? message.result.bytes : undefined;
  assert.is(bytes?.toString(), '{"tools":[]}');
  assert.ok(Number(bytes?.buffer.byteLength) <= Buffer.poolSize, 'nothing else is kept with it');
});

test('may be a window of a larger buffer', () => {
  const text = ORDERS['id first'](5, '{"a":1}');
  const window = Buffer.from(`..${text}..`).subarray(2, 2 + text.length);
  assert.equal(plain(readMessage(window)), { kind: 'result', id: 5, result: '{"a":1}' });
});

test('replace invalid UTF-8 in a small message', () => {
  const latin1 = Buffer.from(ORDERS['result first'](1, '{"a":"\u00e9"}'), 'latin1');
  const message = readMessage(latin1);
  const bytes = message?.kind === 'result' ? Buffer.from(message.result.bytes) : Buffer.alloc(0);
  assert.equal(bytes.toString('hex'), Buffer.from('{"a":"\ufffd"}').toString('hex'));
});

test('are errors if they have an error and a result; an error may have a null id or none', () => {
  const error = { code: -32602, message: 'no', data: { a: 1 } };
  const internal = { code: RPC.internalError, message: 'the server gave no message' };
  for (const [fields, id, expected] of [
    [{ id: 5, error }, 5, error],
    [{ id: 1, result: 1, error }, 1, error],
    [{ id: null, error }, null, error],
    [{ error }, null, error],
    [{ id: 1, error: { code: 'E', message: 7 } }, 1, internal],
  ] as const)
    assert.equal(read(JSON.stringify({ jsonrpc: '2.0', ...fields })), { kind: 'error', id, error: expected });
});

test('are notifications or requests of the backend, with an empty object for missing params', () => {
  const progress = { method: 'notifications/progress', params: { progress: 1 } };
  const sampling = { id: 'r1', method: 'sampling/createMessage', params: { a: 1 } };
  assert.equal(read(JSON.stringify({ jsonrpc: '2.0', ...progress })), { kind: 'notification', ...progress });
  assert.equal(read(JSON.stringify({ jsonrpc: '2.0', ...sampling })), { kind: 'request', ...sampling });
  for (const params of [{}, { params: [1] }, { params: null }]) {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', ...params });
    assert.equal(read(text), { kind: 'request', id: 1, method: 'ping', params: {} });
  }
});

test('are refused in any form other than a JSON-RPC 2.0 message', () => {
  const texts = [
    ...['', '   ', 'Server listening on port 3000', '{"jsonrpc":"2.0","id":1,"result":{}'],
    ...['[{"jsonrpc":"2.0","id":1,"result":{}}]', '"text"', 'null', '{}', '{"id":1,"result":{}}'],
    ...['{"jsonrpc":"1.0","id":1,"result":{}}', '{"result":{},"jsonrpc":"1.0","id":1}'],
    ...['{"jsonrpc":2.0,"id":1,"result":{}}', '{"jsonrpc":"2.0","id":1}', '{"jsonrpc":"2.0","result":{}}'],
    ...['{"jsonrpc":"2.0","id":null,"result":{}}', '{"jsonrpc":"2.0","id":{},"result":{}}'],
    ...['{"jsonrpc":"2.0","id":null,"method":"ping"}', '{"jsonrpc":"2.0","id":1,"error":"no"}'],
    '{"jsonrpc":"2.0","id":1,"method":7}',
  ];
  for (const text of texts) assert.is(read(text), undefined, text);
});

test('have strings and finite numbers as ids', () => {
  const values = ['', 'a', 0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, null, undefined, {}, [], true];
  const found = values.map(readId).filter((id) => id !== undefined);
  assert.equal(found, ['', 'a', 0, -1, 1.5]);
  const escaped = read('{"jsonrpc":"2.0","id":1,"result":{},"\\u0069d":7}');
  assert.equal(escaped, { kind: 'result', id: 7, result: '{}' }, 'the last id counts');
});

test('of a server have short methods, and ids of its requests are short: both are kept, and not counted', () => {
  const request = (id: string, method: string) => read(JSON.stringify({ jsonrpc: '2.0', id, method }))?.kind;
  const notification = (method: string) => read(JSON.stringify({ jsonrpc: '2.0', method }))?.kind;
  assert.equal([request('i'.repeat(256), 'ping'), request('i'.repeat(257), 'ping')], ['request', undefined]);
  assert.equal([request('i', 'm'.repeat(1_024)), request('i', 'm'.repeat(1_025))], ['request', undefined]);
  assert.equal(
    [notification('m'.repeat(1_024)), notification('m'.repeat(1_025))],
    ['notification', undefined],
  );
});

test('may have whole numbers of any size as ids, which are written unchanged', () => {
  for (const id of ['9007199254740993', '-9007199254740993', '1234567890123456789012345']) {
    const message = read(`{"jsonrpc":"2.0","id":${id},"method":"roots/list"}`);
    assert.is(message?.kind === 'request' && JSON.stringify(idValue(message.id)), id);
  }
  for (const id of ['1e400', '-0', '1'.repeat(100), '1234567890123456789.5']) {
    assert.is(readId(parseExact(id)), undefined, id);
  }
});

test('keep the numbers in errors, notifications and results unchanged', () => {
  const data = '{"n":[1234567890123456789,-0,1e400]}';
  const error = read(`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no","data":${data}}}`);
  assert.ok(JSON.stringify(error).includes(data));
  const notification = read(`{"jsonrpc":"2.0","method":"m","params":${data}}`);
  assert.ok(JSON.stringify(notification).includes(data));
  const result = read(`{"jsonrpc":"2.0", "id":1, "result":${data}}`);
  assert.equal(result, { kind: 'result', id: 1, result: data });
});

test('are refused if they are nested too deeply to be serialized', () => {
  const deep = '['.repeat(20_000) + ']'.repeat(20_000);
  assert.is(readMessage(Buffer.from(`{"id":1,"jsonrpc":"2.0","result":{"a":${deep}}}`)), undefined);
});

test('are errors without their data if it is nested too deeply to be serialized by those who pass it on', () => {
  for (const [levels, isKept] of [
    [256, true],
    [257, false],
    [4_000, false],
    [20_000, false],
  ] as const) {
    const data = '['.repeat(levels) + ']'.repeat(levels);
    const error = `{"code":-32000,"message":"no","data":${data}}`;
    const message = readMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"error":${error}}`));
    const shown = { code: -32000, message: 'no', ...(isKept ? { data: JSON.parse(data) } : {}) };
    assert.equal(message, { kind: 'error', id: 1, error: shown }, `${levels}`);
  }
});

/** Texts that are JSON or nearly JSON. */
function mutated(): fc.Arbitrary<Buffer> {
  const write = fc.constantFrom(...Object.values(ORDERS));
  const answer = fc
    .tuple(fc.json({ maxDepth: 4, stringUnit: 'binary' }), fc.nat(300), write)
    .map(([result, id, toText]) => Buffer.from(toText(id, result)));
  const inserted = fc.constantFrom(
    ...[
      ...['"', '\\', '{', '}', '[', ']', ',', ':', '\n', '\0', '\\u00e9', '\\x', '-', '01', '1.', 'e5'],
      ...['true', 'nul'],
    ],
    ...[' ', ',"id":7', ',"result":{}', '"id":7,', ',"\\u0069d":7', ',"error":null', ',"method":"a"'],
    ...['{"jsonrpc":"2.0","id":7,"result":{}}', ',"jsonrpc":"2.0","id":7}'],
  );
  const bytes = fc.oneof(
    inserted.map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 3 }),
  );
  const edit = fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(3), bytes);
  return fc.tuple(answer, fc.array(edit, { maxLength: 3 })).map(([start, edits]) =>
    edits.reduce((text, [where, removed, added]) => {
      const at = Math.floor(where * text.length);
      return Buffer.concat([text.subarray(0, at), added, text.subarray(at + removed)]);
    }, start),
  );
}

test('are accepted exactly if JSON.parse accepts them, with the same id and result, for any mutation of an answer', () => {
  const shift = fc.nat(3);
  let accepted = 0;
  fc.assert(
    fc.property(mutated(), shift, (text, offset) => {
      // At every alignment in memory.
      const given = Buffer.alloc(text.length + offset).subarray(offset);
      text.copy(given);
      const message = plain(readMessage(given));
      const expected = parsedAnswer(text);
      assert.is(message?.kind === 'result', expected !== undefined, text.toString());
      if (message?.kind !== 'result' || expected === undefined) return;
      accepted += 1;
      assert.is(message.id, expected.id);
      assert.equal(JSON.parse(message.result), expected.result);
    }),
    { seed: 7, numRuns: 20_000 },
  );
  assert.ok(accepted > 2_000, `only ${accepted} accepted`);
});

/** The oracle: an answer with a result as JSON.parse reads it. */
function parsedAnswer(text: Buffer): { id: unknown; result: unknown } | undefined {
  try {
    const message: unknown = JSON.parse(text.toString('utf8'));
    return isResult(message) ? message : undefined;
  } catch {
    return undefined; // not JSON
  }
}

function isResult(message: unknown): message is { id: unknown; result: unknown } {
  if (!isJsonObject(message) || message.jsonrpc !== '2.0' || message.result === undefined) return false;
  return (
    readId(message.id) !== undefined && typeof message.method !== 'string' && !isJsonObject(message.error)
  );
}

test('over the size limit are refused unless they are plain answers', () => {
  const long = 'x'.repeat(LIMITS.parsedMessageBytes);
  const found = read(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"${long}"}}`);
  assert.is(found, undefined);
});

test('reads the messages of an array, and of nothing else', () => {
  const one = '{"jsonrpc":"2.0","id":1,"result":{"a":1.0}}';
  const two = '{"jsonrpc":"2.0","method":"notifications/message"}';
  const kindsIn = (text: string) => readBatch(Buffer.from(text)).map(({ kind }) => kind);
  assert.equal(kindsIn(`[${one}]`), ['result']);
  assert.equal(kindsIn(`\ufeff [ ${two} , 7, ${one} ]\n`), ['notification', 'result']);
  for (const text of [
    '',
    '[',
    '[]',
    '[INFO] started',
    `[${one}`,
    `[${one}]]`,
    `[${one},]`,
    `[[${one}]]`,
    one,
  ])
    assert.equal(kindsIn(text), [], text);
  assert.equal(kindsIn(`[${Array.from({ length: 101 }, () => one)}]`), []);
});

test.run();

// Bodies and messages of clients and to clients, their bounds, and the failures of the gateway as MCP clients see them. Refusals of
// messages are in legacy-refusals.spec.ts.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../src/domain/errors/backend-errors.ts';
import { ERRORS, type ErrorCode, GatewayError } from '../../src/domain/errors/errors.ts';
import { JsonText } from '../../src/domain/json/json.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { isProfileTooLarge, isTooLong } from '../../src/protocol/client-bounds.ts';
import { readBody } from '../../src/protocol/client-message.ts';
import { RpcFailure, resultMessage, rpcFailureOf } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('rpc');

test('no error code of the gateway collides with codes that JSON-RPC or SDKs reserve', () => {
  const known = [-32700, -32602, -32603, -32000, -32001];
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const failure = rpcFailureOf(new GatewayError(code, 'x'));
    assert.is(failure.status, ERRORS[code].status);
    const { code: rpcCode } = failure.error;
    assert.ok(known.includes(rpcCode) || rpcCode < -32768 || rpcCode > -32000, `${code} is ${rpcCode}`);
  }
});

test('a thrown error keeps its reason, and the id of its request', () => {
  const thrown = new GatewayError('BACKEND_TIMEOUT', 'Too slow.', { instanceId: 'a', delivered: 'unknown' });
  const { status, error, id, headers } = rpcFailureOf(thrown, 'x');
  assert.equal([status, id, headers], [503, 'x', []]);
  assert.equal(error, {
    code: 503,
    message: 'Too slow.',
    data: { error_code: 'BACKEND_TIMEOUT', instance_id: 'a', delivered: 'unknown' },
  });
});

test('an error answer does not show why a backend failed, its stderr, or details of a defect', () => {
  const stderr = ['secret'];
  const body = rpcFailureOf(backendUnavailable('cannot read /etc/secret', { delivered: 'no', stderr })).body;
  assert.not(body.includes('secret'));
  assert.not(rpcFailureOf(new Error('password=secret')).body.includes('secret'));
});

const bytes = (text: string) => JsonText.ofBytes(Buffer.from(text));

test('an id with multi-byte characters does not damage the result', () => {
  const id = 'ü"\n€😀';
  assert.equal(JSON.parse(String(resultMessage(id, bytes('{"a":[]}')))), {
    jsonrpc: '2.0',
    id,
    result: { a: [] },
  });
});

test('a profile has at most 32 Ki units of JSON', () => {
  const around = JSON.stringify([{ x: '' }, {}]).length;
  const filled = (units: number) => ({ x: 'ü'.repeat(units - around) });
  assert.is(isProfileTooLarge(filled(32 * 1024), {}), false);
  assert.is(isProfileTooLarge(filled(32 * 1024 + 1), {}), true);
  assert.is(isProfileTooLarge({}, filled(32 * 1024 + 1)), true);
});

test('a profile has at most 1,000 values, keys included', () => {
  const filled = (values: number) => ({ x: Array(values - 5).fill({}) }); // the pair, both objects, the key, the list
  assert.is(isProfileTooLarge(filled(1_000), {}), false);
  assert.is(isProfileTooLarge(filled(1_001), {}), true);
  assert.is(isProfileTooLarge({}, filled(1_001)), true);
  const keys = Object.fromEntries(Array.from({ length: 499 }, (_, index) => [`k${index}`, 1]));
  assert.is(isProfileTooLarge(keys, {}), true);
  const exact = Array(250).fill(JsonText.ofText('1e400'));
  assert.is(isProfileTooLarge({ exact }, {}), true);
});

test('a cursor or URI has at most 8 KiB of UTF-8', () => {
  const table: readonly [text: string, isLong: boolean][] = [
    ['x'.repeat(8 * 1024), false],
    ['x'.repeat(8 * 1024 + 1), true],
    ['ü'.repeat(4 * 1024), false],
    ['ü'.repeat(4 * 1024 + 1), true],
    ['€'.repeat(2_731), true],
  ];
  for (const [text, isLong] of table) assert.is(isTooLong(text), isLong);
});

/** Status and code of the refusal. */
function refusal(body: string | Buffer): string {
  const failure = failureOf(body);
  return failure === undefined ? 'read' : `${failure.status} ${failure.error.code}`;
}

function failureOf(body: string | Buffer): RpcFailure | undefined {
  try {
    readBody(Buffer.from(body));
    return undefined;
  } catch (thrown) {
    if (thrown instanceof RpcFailure) return thrown;
    throw thrown;
  }
}

test('accepts exactly what JSON.parse accepts', () => {
  const bodies = fc
    .tuple(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(undefined, 1, '\n\t'), fc.boolean())
    .map(([params, space, isRequest]) =>
      JSON.stringify(isRequest ? { id: 1, params: { _meta: params, a: params } } : params, undefined, space),
    );
  const pieces = fc.constantFrom(
    ...['"', '\\', ',', ':', '{', '}', '[', ']', '0', '-', '.', 'e', '\n', 'u', 'null', ''],
  );
  const changed = fc.tuple(bodies, fc.nat(), pieces, fc.nat(2)).map(([body, at, piece, dropped]) => {
    const place = at % (body.length + 1);
    return body.slice(0, place) + piece + body.slice(place + dropped);
  });
  fc.assert(
    fc.property(fc.oneof(bodies, changed), (body) => {
      // Invalid Unicode is refused, too.
      fc.pre(Buffer.from(body).toString() === body && !/\\u(?:0000|d[89a-f])/i.test(body));
      let isJson = true;
      try {
        JSON.parse(body);
      } catch {
        isJson = false;
      }
      assert.is(refusal(body), isJson ? 'read' : '400 -32700', body);
    }),
    { numRuns: 2_000 },
  );
});

test('refuses a byte order mark, and invalid UTF-8 instead of replacing it', () => {
  assert.is(refusal('\ufeff{}'), '400 -32700');
  assert.is(refusal(Buffer.from([0x22, 0xff, 0x22])), '400 -32700');
  assert.is(refusal(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), '400 -32700');
});

test('refuses more values than the limit with 422, keys included', () => {
  assert.is(refusal(`{"x":[${Array(LIMITS.bodyValues - 3).fill('{}')}]}`), 'read');
  assert.is(refusal(`{"x":[${Array(LIMITS.bodyValues - 2).fill('{}')}]}`), '422 -32600');
  const keys = Array.from({ length: LIMITS.bodyValues / 2 }, (_, index) => `"k${index}":0`);
  assert.is(refusal(`{${keys}}`), '422 -32600');
});

test('does not count the arguments of a request, which are not parsed', () => {
  const many = `[${Array(LIMITS.bodyValues + 1).fill(0)}]`;
  const message = (params: string, id = ',"id":1') => `{"method":"tools/call","params":${params}${id}}`;
  const idOf = (body: string) => failureOf(body)?.id;
  assert.is(failureOf(message(`{"name":"x","arguments":${many}}`)), undefined);
  assert.is(failureOf(message(`{"name":"x","arguments":{"arguments":${many}}}`)), undefined);
  assert.is(idOf(message(`{"name":"x","other":{"x":${many}}}`)), 1);
  assert.is(idOf(`{"arguments":${many},"method":"x","id":2}`), 2);
  // A notification is parsed.
  assert.is(idOf(message(`{"arguments":${many}}`, '')), null);
});

test('passes NUL characters and lone surrogates on', () => {
  for (const text of ['{"a":["\\u0000"]}', '{"\\ud800":1}', '"\\ud83d\\ud83d"', '"\\\\u0000"'])
    assert.equal(readBody(Buffer.from(text)), JSON.parse(text));
});

test('a refused request is answered with its id, as far as that can be read', () => {
  const deep = `${'['.repeat(200)}${']'.repeat(200)}`;
  const table: readonly [body: string, id: unknown][] = [
    [`{"id":7,"method":"x","params":${deep}}`, 7],
    [`{"method":"x","params":{"id":5,"a":${deep}},"jsonrpc":"2.0","id":"s\\u0041"}`, 'sA'],
    [`{"method":"x","id":9007199254740993,"params":${deep}}`, 9007199254740993n],
    ['{"id":7,"method":"x","params":{"id":5', 7],
    ['{"method":"x","params":{"id":5', null],
    ['{"method":"x","params":{"a":"}\\""},"id":7,', 7],
    [`{"id":7,"result":${deep}}`, null],
    [`{"id":{},"method":"x","params":${deep}}`, null],
    [`[{"id":7,"method":"x","params":${deep}}]`, null],
    ['{"id":7', null],
    ['', null],
  ];
  for (const [body, id] of table) assert.is(failureOf(body)?.id, id, body.slice(0, 80));
});

test.run();

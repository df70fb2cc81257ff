import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { LIMITS } from '../../src/domain/limits.ts';
import { readBody } from '../../src/protocol/client-message.ts';
import { RpcFailure } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('read body');

/** Status and code of the refusal. */
function refusal(body: string | Buffer): string {
  try {
    readBody(Buffer.from(body));
  } catch (thrown) {
    if (!(thrown instanceof RpcFailure)) throw thrown;
    assert.is(thrown.id, null);
    return `${thrown.status} ${thrown.error.code}`;
  }
  return 'read';
}

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

test('reads JSON of any kind', () => {
  assert.equal(readBody(Buffer.from('{"jsonrpc":"2.0","method":"grüße"}')), {
    jsonrpc: '2.0',
    method: 'grüße',
  });
  assert.equal(readBody(Buffer.from(' [1, null] ')), [1, null]);
  assert.is(readBody(new Uint8Array([0x31])), 1);
});

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
      // What is no proper text is refused, too.
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

test('refuses a byte order mark, and what is not UTF-8 instead of replacing it', () => {
  assert.is(refusal('\ufeff{}'), '400 -32700');
  assert.is(refusal(Buffer.from([0x22, 0xff, 0x22])), '400 -32700');
  assert.is(refusal(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), '400 -32700');
});

test('does not repeat the body in its message', () => {
  try {
    readBody(Buffer.from('{"token":"s3cret" oops'));
    assert.unreachable();
  } catch (thrown) {
    assert.not.match(String(thrown), /s3cret/);
  }
});

test('refuses more than 128 levels', () => {
  assert.is(refusal(nested(128)), 'read');
  assert.is(refusal(nested(129)), '400 -32600');
  assert.is(refusal('[{"a":'.repeat(100_000)), '400 -32600');
});

test('refuses more values than the limit with 422, keys included', () => {
  assert.is(refusal(`{"x":[${Array(LIMITS.bodyValues - 3).fill('{}')}]}`), 'read');
  assert.is(refusal(`{"x":[${Array(LIMITS.bodyValues - 2).fill('{}')}]}`), '422 -32600');
  const keys = Array.from({ length: LIMITS.bodyValues / 2 }, (_, index) => `"k${index}":0`);
  assert.is(refusal(`{${keys}}`), '422 -32600');
});

test('refuses NUL characters and lone surrogates, however deep, and lets what only looks like them pass', () => {
  for (const bad of ['{"a":["\\u0000"]}', '{"\\ud800":1}', '["\\uDFFFx"]', '"\\ud83d\\ud83d"']) {
    assert.throws(
      () => readBody(Buffer.from(bad)),
      (error: RpcFailure) => error.status === 400 && error.error.code === -32600,
      bad,
    );
  }
  for (const good of ['"\\ud83d\\ude00"', '"\\\\u0000"', '{"a":"\\u0001"}']) {
    assert.equal(readBody(Buffer.from(good)), JSON.parse(good));
  }
});

test('refuses a batch of more than 100 messages', () => {
  assert.is(refusal(JSON.stringify(Array(100).fill({}))), 'read');
  assert.is(refusal(JSON.stringify(Array(101).fill({}))), '400 -32600');
});

test.run();

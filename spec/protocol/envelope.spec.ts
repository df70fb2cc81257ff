// Messages to clients, byte by byte.

import * as assert from 'uvu/assert';
import { JsonText } from '../../src/domain/json.ts';
import { errorMessage, notificationMessage, requestMessage, resultMessage } from '../../src/protocol/rpc.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('envelope');
const bytes = (text: string) => JsonText.ofBytes(Buffer.from(text));

test('a result keeps its bytes, and its id its type', () => {
  const result = bytes('{ "n" : 1.0, "é":"\\u00e9" }');
  assert.is(
    String(resultMessage(1, result)),
    '{"jsonrpc":"2.0","id":1,"result":{ "n" : 1.0, "é":"\\u00e9" }}',
  );
  assert.is(String(resultMessage('1', bytes('{}'))), '{"jsonrpc":"2.0","id":"1","result":{}}');
});

test('an id of many bytes leaves the result whole', () => {
  const id = 'ü"\n€😀';
  assert.equal(JSON.parse(String(resultMessage(id, bytes('{"a":[]}')))), {
    jsonrpc: '2.0',
    id,
    result: { a: [] },
  });
});

test('errors, notifications and requests', () => {
  assert.is(
    errorMessage(null, { code: -32700, message: 'no' }),
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}',
  );
  assert.is(notificationMessage('a', { b: 1 }), '{"jsonrpc":"2.0","method":"a","params":{"b":1}}');
  assert.is(requestMessage(7, 'a', {}), '{"jsonrpc":"2.0","id":7,"method":"a","params":{}}');
});

test.run();

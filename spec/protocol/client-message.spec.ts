// Messages of clients. What is refused, and how, is in legacy-refusals.spec.ts.

import * as assert from 'uvu/assert';
import { readBatch, readClientMessage, requestsOf } from '../../src/protocol/client-message.ts';
import { suite } from '../helpers/suite.ts';
import { notification, request } from './legacy/legacy-harness.ts';

const test = suite('client message');

test('requests, with ids of both types and any method', () => {
  for (const id of [0, -1, 2 ** 53 - 1, '', '0']) {
    assert.equal(readClientMessage(request(id, 'x/y', { a: 1 })), {
      kind: 'request',
      id,
      method: 'x/y',
      params: { a: 1 },
    });
  }
});

test('notifications have params, if only empty ones', () => {
  assert.equal(readClientMessage(notification('n')), { kind: 'notification', method: 'n', params: {} });
});

test('answers are results of any kind, or errors', () => {
  for (const result of [{}, null, 0, 'x', [1]]) {
    assert.equal(readClientMessage({ jsonrpc: '2.0', id: 1, result }), {
      kind: 'answer',
      id: 1,
      reply: { result },
    });
  }
  const error = { code: 1.5, message: '', data: null };
  assert.equal(readClientMessage({ jsonrpc: '2.0', id: 'a', error: { ...error, more: 1 } }), {
    kind: 'answer',
    id: 'a',
    reply: { error },
  });
});

test('of a batch, those that want an answer', () => {
  const messages = readBatch([notification('n'), request(1, 'a'), request('1', 'b')]);
  assert.equal([messages.length, requestsOf(messages).map(({ id }) => id)], [3, [1, '1']]);
});

test.run();

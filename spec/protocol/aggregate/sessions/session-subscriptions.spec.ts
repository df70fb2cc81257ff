// Subscriptions in the value of a session, where names of templates and URIs are also names of what every object has.

import * as assert from 'uvu/assert';
import type { AggregateSessionValue } from '../../../../src/domain/sessions/session-value.ts';
import {
  afterAnswer,
  endOfSubscription,
  subscribedUris,
} from '../../../../src/protocol/aggregate/sessions/session-subscriptions.ts';
import { suite } from '../../../helpers/suite.ts';

const test = suite('the subscriptions of an aggregate session');
const NAME = 'constructor';
const EMPTY = { uris: {} } as AggregateSessionValue;

function request(method: string, uri: string) {
  return { method, params: { uri } };
}

function subscribed(value: AggregateSessionValue, asked: string, own: string): AggregateSessionValue {
  const method = 'resources/subscribe';
  return afterAnswer(value, NAME, request(method, own), request(method, asked));
}

test('a template and URIs may have any name', () => {
  assert.equal([...subscribedUris(EMPTY, NAME)], []);
  assert.is(endOfSubscription(EMPTY, request('resources/unsubscribe', NAME)), undefined);
  const first = subscribed(EMPTY, `file://${NAME}/a`, 'file://a');
  const both = subscribed(subscribed(first, NAME, NAME), 'toString', 'toString');
  assert.equal([...subscribedUris(both, NAME)], ['file://a', NAME, 'toString']);
  const end = endOfSubscription(both, request('resources/unsubscribe', NAME));
  assert.equal([end?.answering?.template, end?.answering?.request.params], [NAME, { uri: NAME }]);
});

test.run();

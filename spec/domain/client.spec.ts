// Who may be asked something, and how often an answer counts.

import * as assert from 'uvu/assert';
import { answeredOnce, type ClientReply, mayBeAsked } from '../../src/domain/client.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('client');

test('may be asked by a server when it declared one of three capabilities', () => {
  for (const name of ['sampling', 'elicitation', 'roots'])
    assert.is(mayBeAsked({ capabilities: { [name]: {} } }), true, name);
  for (const capabilities of [{}, { experimental: {} }, { tasks: {}, extensions: {} }])
    assert.is(mayBeAsked({ capabilities }), false);
});

test('is heard once for each request of a server', () => {
  const heard: (ClientReply | string)[] = [];
  const request = {
    kind: 'request',
    method: 'roots/list',
    params: {},
    answer: (reply: ClientReply) => void heard.push(reply),
  } as const;
  const once = answeredOnce(request, () => heard.push('answered'));
  assert.equal([once.method, once.params, heard], ['roots/list', {}, []]);
  for (const result of [1, 2]) once.answer({ result });
  assert.equal(heard, ['answered', { result: 1 }]);
});

test.run();

import { EMPTY } from 'rxjs';
import * as assert from 'uvu/assert';
import { bytes, conversation, eventStream, json, noContent } from '../../src/http/reply.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('replies');

test('are plain values', () => {
  assert.equal(json(201, { a: 1 }, { instanceId: 'one' }), {
    kind: 'bytes',
    status: 201,
    bytes: '{"a":1}',
    instanceId: 'one',
  });
  assert.equal(noContent(), { kind: 'empty', status: 204 });
  assert.equal(eventStream(EMPTY), { kind: 'stream', events$: EMPTY });
  const talk = () => {};
  assert.equal(conversation(talk), { kind: 'conversation', talk });
});

test('carry bytes as they are', () => {
  const text = Buffer.from('{}');
  assert.is(bytes(200, text).bytes, text);
});

test.run();

// Where a task is looked for that was not heard of, and that no search shows anybody what is another's.

import { of, throwError } from 'rxjs';
import * as assert from 'uvu/assert';
import { serverNotFound } from '../../src/domain/error-catalogue.ts';
import type { ExchangeEvent, ExchangeRequest } from '../../src/domain/exchange.ts';
import { JsonText } from '../../src/domain/json.ts';
import type { InquiryOptions } from '../../src/protocol/ports.ts';
import { NOT_FOUND, TaskFinder } from '../../src/protocol/task-finder.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('task finder');

const KNOWN: ExchangeEvent = { kind: 'result', result: JsonText.ofValue({ status: 'working' }) };
const UNKNOWN: ExchangeEvent = { kind: 'error', error: { code: -32602, message: 'Unknown task' } };

/** Instances of which some know the task, and some are gone. */
function setUp(instanceIds: readonly string[], knowing: readonly string[], gone: readonly string[] = []) {
  const finder = new TaskFinder();
  const asked: [ExchangeRequest, InquiryOptions][] = [];
  const backends = {
    modernInstanceIds: () => instanceIds,
    inquire: (request: ExchangeRequest, whom: InquiryOptions) => {
      asked.push([request, whom]);
      if (gone.includes(whom.instanceId)) return throwError(() => serverNotFound(whom.instanceId));
      return of(knowing.includes(whom.instanceId) ? KNOWN : UNKNOWN);
    },
  };
  const seek = (template: string | undefined, ownerId = 'ann') => {
    const question = { taskId: '1', owner: { id: ownerId }, template, backends, meta: { x: 1 } };
    const heard: unknown[] = [];
    const found$ = finder.seek(question);
    found$?.subscribe((found) => heard.push(found));
    return found$ === undefined ? 'no choice' : heard;
  };
  const askedIds = () => asked.splice(0).map(([, { instanceId }]) => instanceId);
  return { finder, seek, asked, askedIds };
}

test('asks who may know, in the words of the client, and remembers for him who does', () => {
  const { finder, seek, asked, askedIds } = setUp(['a', 'b'], ['b'], ['a']);
  assert.equal(seek('t'), ['b']);
  assert.equal(asked[1], [
    { method: 'tasks/get', params: { taskId: '1', _meta: { x: 1 } } },
    { owner: { id: 'ann' }, instanceId: 'b' },
  ]);
  assert.equal(askedIds(), ['a', 'b']);
  assert.is(finder.memory.find({ ownerId: 'ann', template: 't' }, '1'), 'b');
  assert.is(finder.memory.find({ ownerId: 'eve', template: 't' }, '1'), undefined);
});

test('looks for nothing at the path of a template that has one instance', () => {
  const { seek, askedIds } = setUp(['a'], ['a']);
  assert.equal([seek('t'), askedIds()], ['no choice', []]);
});

test('looks over all templates even for one instance, and finds nobody where there is none', () => {
  const one = setUp(['t/a'], ['t/a']);
  assert.equal([one.seek(undefined), one.askedIds()], [['t/a'], ['t/a']]);
  const none = setUp([], []);
  assert.equal([none.seek(undefined), none.seek('t')], [[NOT_FOUND], 'no choice']);
});

test('takes what two templates know for nobody’s, and remembers neither', () => {
  const { finder, seek } = setUp(['t/a', 'u/a'], ['t/a', 'u/a']);
  assert.equal(seek(undefined), [undefined]);
  assert.is(finder.memory.size, 0);
});

for (const [template, where, named] of [
  ['t', 'its template', (id: string) => id],
  [undefined, 'all templates', (id: string) => `t/${id}`],
] as const) {
  test(`does not ask for a task where another one began it, at ${where}`, () => {
    const ids = ['a', 'b'].map(named);
    const { finder, seek, askedIds } = setUp(ids, ids);
    finder.memory.begun({ ownerId: 'bob', template: 't' }, '1', 'a');
    assert.equal([seek(template), askedIds()], [[named('b')], [named('b')]]);
    finder.memory.begun({ ownerId: 'bob', template: 't' }, '1', 'b');
    assert.equal([seek(template, 'eve'), askedIds()], [[NOT_FOUND], []]);
  });
}

test('does not look again at once for what nobody knew, and tells whether all have said so', () => {
  const all = setUp(['t/a', 'u/a'], []);
  assert.equal(
    [all.seek(undefined), all.seek(undefined), all.askedIds()],
    [[NOT_FOUND], [NOT_FOUND], ['t/a', 'u/a']],
  );
  const some = setUp(['a', 'b'], [], ['b']);
  assert.equal([some.seek('t'), some.seek('t'), some.askedIds()], [[undefined], [undefined], ['a', 'b']]);
  const many = setUp(
    Array.from({ length: 33 }, (_, id) => `${id}`),
    [],
  );
  assert.equal([many.seek('t'), many.askedIds().length], [[undefined], 32]);
});

test.run();

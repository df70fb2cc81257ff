// Notices of changed lists: one for many changes, and the last change is never left out.

import { mock } from 'node:test';
import { Observable, Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ServerNotification } from '../../../src/domain/client.ts';
import type { ListField } from '../../../src/domain/mcp.ts';
import { listNotices, withListNotices } from '../../../src/protocol/lists/cached-backends.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('list notices');
test.before.each(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] }));
test.after.each(() => mock.timers.reset());

function setUp() {
  const changes$ = new Subject<ListField>();
  const heard: string[] = [];
  const subscription = listNotices(changes$).subscribe(({ method }) => heard.push(method));
  return { changes$, heard, subscription };
}

test('makes one notice of changes that come together, and one of resources and their templates', () => {
  const { changes$, heard } = setUp();
  for (let turn = 0; turn < 3; turn += 1) changes$.next('tools');
  for (const list of ['resources', 'resourceTemplates', 'prompts'] as const) changes$.next(list);
  assert.equal(heard, []);
  mock.timers.tick(50);
  assert.equal(heard.sort(), [
    'notifications/prompts/list_changed',
    'notifications/resources/list_changed',
    'notifications/tools/list_changed',
  ]);
  mock.timers.tick(5_000);
  assert.is(heard.length, 3);
});

test('tells no more than one a second of a list that changes all the time, and the last change', () => {
  const { changes$, heard } = setUp();
  for (let atMs = 0; atMs < 10_000; atMs += 10) {
    changes$.next('tools');
    mock.timers.tick(10);
  }
  assert.ok(heard.length >= 9 && heard.length <= 11, `${heard.length} notices`);
  const before = heard.length;
  changes$.next('tools');
  mock.timers.tick(1_050);
  assert.ok(heard.length > before);
});

test('leaves no timer behind when nobody listens', () => {
  const { changes$, heard, subscription } = setUp();
  changes$.next('tools');
  subscription.unsubscribe();
  mock.timers.tick(5_000);
  assert.equal([heard, changes$.observed], [[], false]);
});

test('tells what a server says of its lists together with the changes, and the rest as it comes', () => {
  const changes$ = new Subject<ListField>();
  const messages$ = new Observable<ServerNotification>((subscriber) => {
    for (const method of ['notifications/tools/list_changed', 'notifications/resources/updated'])
      subscriber.next({ kind: 'notification', method, params: {} });
  });
  const heard: string[] = [];
  withListNotices(messages$, changes$).subscribe(({ method }) => heard.push(method));
  changes$.next('tools');
  assert.equal(heard, ['notifications/resources/updated']);
  mock.timers.tick(5_000);
  assert.equal(heard.slice(1), ['notifications/tools/list_changed']);
});

test('ends with the messages', () => {
  const [messages$, changes$] = [new Subject<ServerNotification>(), new Subject<ListField>()];
  let isOver = false;
  withListNotices(messages$, changes$).subscribe({
    complete: () => {
      isOver = true;
    },
  });
  changes$.next('tools');
  messages$.complete();
  assert.equal([isOver, changes$.observed], [true, false]);
});

test.run();

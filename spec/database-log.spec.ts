// One line when the database goes away, one when it is back, however often anything is heard in between.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import type { RevisionChange } from '../src/persistence/revision-watch.ts';
import { logDatabase } from '../src/server.ts';
import { suite } from './helpers/suite.ts';

const test = suite('the log of the database');

test('tells every going and every coming once, with the reason', () => {
  const storeChanges$ = new Subject<RevisionChange>();
  const lines: unknown[] = [];
  const listening = logDatabase(storeChanges$, {
    error: (...line: unknown[]) => lines.push(line),
    info: (...line: unknown[]) => lines.push(line),
  });
  const gone = (reason: string) => [
    { reason },
    'the database is away; known callers and instances are served',
  ];
  storeChanges$.next({ kind: 'answered' });
  storeChanges$.next({ kind: 'changed' });
  assert.equal(lines, []);
  storeChanges$.next({ kind: 'away', reason: 'no answer within 5000 ms' });
  storeChanges$.next({ kind: 'away', reason: 'another one' });
  assert.equal(lines, [gone('no answer within 5000 ms')]);
  storeChanges$.next({ kind: 'changed' });
  storeChanges$.next({ kind: 'answered' });
  assert.equal(lines.slice(1), [['the database is back']]);
  storeChanges$.next({ kind: 'away', reason: 'again' });
  assert.equal(lines.slice(2), [gone('again')]);
  listening.unsubscribe();
  storeChanges$.next({ kind: 'answered' });
  assert.is(lines.length, 3);
});

test.run();

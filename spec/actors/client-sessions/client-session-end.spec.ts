// The end of a session: told to each who waits, once, and to who comes later.

import * as assert from 'uvu/assert';
import { ClientSessionEnd } from '../../../src/actors/client-sessions/client-session.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('client session: end');

test('is told once to who waited and to who comes later, with its reason', () => {
  const end = new ClientSessionEnd();
  const heard: string[] = [];
  const hear = (name: string) =>
    end.told$.subscribe({
      next: (reason) => heard.push(`${name}: ${reason}`),
      complete: () => heard.push(`${name} is done`),
    });
  hear('one');
  hear('gone').unsubscribe();
  assert.is(end.reason, undefined);
  end.come('it was closed');
  assert.equal([end.reason, heard], ['it was closed', []]);
  end.tell();
  hear('late');
  assert.equal(heard, ['one: it was closed', 'one is done', 'late: it was closed', 'late is done']);
});

test.run();

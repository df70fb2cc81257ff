// Which requests are about tasks.

import * as assert from 'uvu/assert';
import { isAboutTask } from '../../src/actors/task-requests.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('requests about tasks');

test('are those of their own methods, and calls of tools that are to become one', () => {
  for (const method of ['tasks/get', 'tasks/list', 'tasks/result', 'tasks/cancel'])
    assert.ok(isAboutTask({ method }));
  assert.ok(isAboutTask({ method: 'tools/call', params: { name: 'write', task: { ttl: 1 } } }));
  assert.not.ok(isAboutTask({ method: 'tools/call', params: { name: 'task' } }));
  for (const method of ['tools/call', 'tools/list', 'tasks']) assert.not.ok(isAboutTask({ method }));
});

test.run();

import * as assert from 'uvu/assert';
import {
  announcesChanges,
  announcesUpdates,
  changedList,
  LIST_NOTICES,
  NOTICED_LISTS,
} from '../../src/domain/mcp.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('notices');

test('of lists tell which list they are about', () => {
  assert.equal(
    ['tools', 'prompts', 'resources', 'roots'].map((list) =>
      changedList(`notifications/${list}/list_changed`),
    ),
    ['tools', 'prompts', 'resources', undefined],
  );
});

test('of lists are one for resources and for their templates', () => {
  assert.equal(Object.values(LIST_NOTICES).map(changedList), ['tools', 'prompts', 'resources', 'resources']);
  assert.equal([...new Set(Object.values(LIST_NOTICES).map(changedList))], [...NOTICED_LISTS]);
});

test('of lists come from servers that announce them', () => {
  const announces = (tools: unknown) => announcesChanges({ tools, prompts: { listChanged: true } }, 'tools');
  assert.equal([{ listChanged: true }, { listChanged: 1 }, {}, true, undefined].map(announces), [
    true,
    false,
    false,
    false,
    false,
  ]);
});

test('of resources come from servers that can be subscribed to', () => {
  assert.equal(
    [{ subscribe: true }, { subscribe: 'yes' }, {}, undefined].map((resources) =>
      announcesUpdates({ resources }),
    ),
    [true, false, false, false],
  );
});

test.run();

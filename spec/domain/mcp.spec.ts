import * as assert from 'uvu/assert';
import {
  isRepeatableTool,
  LEGACY_VERSIONS,
  LIST_METHODS,
  METHODS,
  MODERN_VERSIONS,
} from '../../src/domain/mcp.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('mcp');

/** The methods for which a trait is set. */
const methodsWith = (trait: 'repeatable' | 'nameField') =>
  Object.keys(METHODS).filter((method) => METHODS[method]?.[trait]);

test('repeats every method it knows but the call of a tool and what changes a task', () => {
  const others = Object.keys(METHODS).filter((method) => !METHODS[method]?.repeatable);
  assert.equal(others, ['tools/call', 'tasks/update', 'tasks/cancel']);
});

test('does not repeat a method it does not know', () => {
  for (const method of ['tools/delete', '', 'constructor', '__proto__']) {
    assert.is(METHODS[method]?.repeatable, undefined);
  }
});

test('lists each field by a method of its own that may be repeated', () => {
  const methods = Object.values(LIST_METHODS);
  assert.is(new Set(methods).size, methods.length);
  assert.ok(methods.every((method) => METHODS[method]?.repeatable));
});

test('mirrors the name of what is called, read or got, and the id of a task', () => {
  assert.equal(
    methodsWith('nameField').map((method) => [method, METHODS[method]?.nameField]),
    [
      ['tools/call', 'name'],
      ['resources/read', 'uri'],
      ['prompts/get', 'name'],
      ['tasks/get', 'taskId'],
      ['tasks/update', 'taskId'],
      ['tasks/cancel', 'taskId'],
    ],
  );
});

test('lists revisions newest first, and each in one era', () => {
  const versions = [...MODERN_VERSIONS, ...LEGACY_VERSIONS];
  assert.equal(versions, [...new Set(versions)].sort().reverse());
});

test('repeats a tool that says it only reads or does the same twice', () => {
  assert.is(isRepeatableTool({ name: 'read', annotations: { readOnlyHint: true } }), true);
  assert.is(isRepeatableTool({ name: 'set', annotations: { idempotentHint: true } }), true);
});

test('does not repeat a tool that says nothing of the kind, or that nobody knows', () => {
  assert.is(isRepeatableTool({ name: 'send' }), false);
  assert.is(isRepeatableTool({ name: 'send', annotations: {} }), false);
  assert.is(
    isRepeatableTool({ name: 'send', annotations: { readOnlyHint: false, idempotentHint: false } }),
    false,
  );
  assert.is(isRepeatableTool(undefined), false);
});

test.run();

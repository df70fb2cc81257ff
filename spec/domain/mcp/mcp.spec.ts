// Facts of the protocol: methods and their traits, revisions, notifications, log levels, `_meta`, URIs of resources.

import * as assert from 'uvu/assert';
import {
  changedList,
  includesLevel,
  isLogLevel,
  isRepeatableTool,
  LEGACY_VERSIONS,
  LIST_METHODS,
  LIST_NOTICES,
  listReturnedBy,
  METHODS,
  MODERN_VERSIONS,
  NOTICED_LISTS,
  withoutMeta,
} from '../../../src/domain/mcp/mcp.ts';
import { enclosingUris, isAboutOneOf } from '../../../src/domain/mcp/resource-uris.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('MCP');

test('marks every known method as repeatable except tools/call, tasks/update and tasks/cancel', () => {
  const others = Object.keys(METHODS).filter((method) => !METHODS[method]?.repeatable);
  assert.equal(others, ['tools/call', 'tasks/update', 'tasks/cancel']);
  for (const method of ['tools/delete', '', 'constructor', '__proto__'])
    assert.is(METHODS[method]?.repeatable, undefined);
});

test('has a separate repeatable method for each list', () => {
  const methods = Object.entries(LIST_METHODS);
  assert.is(new Set(methods.map(([, method]) => method)).size, methods.length);
  for (const [list, method] of methods)
    assert.equal([listReturnedBy(method), METHODS[method]?.repeatable], [list, true]);
  for (const method of ['tools/call', 'tools', 'constructor', ''])
    assert.is(listReturnedBy(method), undefined);
});

test('has every revision once, in one era, newest first', () => {
  const versions = [...MODERN_VERSIONS, ...LEGACY_VERSIONS];
  assert.equal(versions, [...new Set(versions)].sort().reverse());
});

test('marks only tools with readOnlyHint or idempotentHint as repeatable', () => {
  const repeats = [
    ...[{ readOnlyHint: true }, { idempotentHint: true }],
    ...[{}, { readOnlyHint: false, idempotentHint: false }, undefined],
  ].map((annotations) => isRepeatableTool({ name: 'x', ...(annotations && { annotations }) }));
  assert.equal([...repeats, isRepeatableTool(undefined)], [true, true, false, false, false, false]);
});

test('maps each list_changed notification to its list, and resource templates to resources', () => {
  const known = ['tools', 'prompts', 'resources', 'roots'].map((list) =>
    changedList(`notifications/${list}/list_changed`),
  );
  assert.equal(known, ['tools', 'prompts', 'resources', undefined]);
  assert.equal(Object.values(LIST_NOTICES).map(changedList), ['tools', 'prompts', 'resources', 'resources']);
  assert.equal([...new Set(Object.values(LIST_NOTICES).map(changedList))], [...NOTICED_LISTS]);
});

test('ranks log levels from debug to emergency, and refuses unknown ones', () => {
  const included = ['debug', 'info', 'notice', 'emergency', 'toString', undefined].map((level) =>
    includesLevel('info', level),
  );
  assert.equal(included, [false, true, true, true, true, true]);
  assert.equal(['notice', 'loud', 3, null, undefined].map(isLogLevel), [true, false, false, false, false]);
});

test('removes the given keys from _meta, and an empty _meta', () => {
  const params = { uri: 'a:b', _meta: { mine: 1, theirs: 2 } };
  assert.equal(withoutMeta(params, ['mine', 'absent']), { uri: 'a:b', _meta: { theirs: 2 } });
  assert.equal(params._meta, { mine: 1, theirs: 2 });
  assert.equal(withoutMeta({ uri: 'a:b', _meta: { mine: 1 } }, ['mine']), { uri: 'a:b' });
  for (const odd of [{}, { _meta: 'mine' }, { _meta: null }]) assert.is(withoutMeta(odd, ['mine']), odd);
});

test('matches an update with the subscribed resource or a parent of it', () => {
  const wanted = new Set(['file:///a', 'memo://notes/', 'x:1', 'root:///', 'q:a?b']);
  const parts = ['file:///a/', 'file:///a/b/c', 'file:///a?x', 'file:///a#y', 'memo://notes/1', 'x:1/2'];
  for (const uri of [...wanted, ...parts, 'root:///a', 'q:a?b#c', 'q:a?b/c'])
    assert.is(isAboutOneOf(uri, wanted), true, uri);
  const others = ['file:///ab', 'file:///', 'memo://notes', 'memo://note', 'x:', 'x:12', 'q:a?bc', 'q:a'];
  for (const uri of [...others, '', '/', '/x', 7, null, undefined, {}])
    assert.is(isAboutOneOf(uri, wanted), false, String(uri));
});

test('lists as enclosing URIs the URI itself and its parents, with and without their last character', () => {
  assert.equal(enclosingUris('a:b/c?x#y'), [
    'a:b/c?x#y',
    'a:b',
    'a:b/',
    'a:b/c',
    'a:b/c?',
    'a:b/c?x',
    'a:b/c?x#',
  ]);
  assert.equal(['a/', 'a', '/', ''].map(enclosingUris), [['a/', 'a'], ['a'], ['/'], ['']]);
});

test('limits the number of enclosing URIs to the outer ones', () => {
  const enclosing = enclosingUris('a/'.repeat(1_000_000));
  assert.is(enclosing.length, 1 + 2 * 64);
  assert.equal(enclosing.slice(1, 4), ['a', 'a/', 'a/a']);
  const late = `${'a'.repeat(8 * 1024)}/b`;
  assert.is(isAboutOneOf(late, new Set([late.slice(0, -2)])), true, 'the longest that a client may name');
  assert.equal(enclosingUris(`${'a'.repeat(10_000_000)}/b`).length, 1);
});

test.run();

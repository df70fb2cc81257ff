import * as assert from 'uvu/assert';
import { isAboutOneOf, wholesOf } from '../../src/domain/resource-uris.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('URIs of resources');

test('an update is about a resource, or about a part of it', () => {
  const wanted = new Set(['file:///a', 'memo://notes/', 'x:1', 'root:///', 'q:a?b']);
  const parts = ['file:///a/', 'file:///a/b/c', 'file:///a?x', 'file:///a#y', 'memo://notes/1', 'x:1/2'];
  for (const uri of [...wanted, ...parts, 'root:///a', 'q:a?b#c', 'q:a?b/c']) {
    assert.is(isAboutOneOf(uri, wanted), true, uri);
  }
  const others = ['file:///ab', 'file:///', 'memo://notes', 'memo://note', 'x:', 'x:12', 'q:a?bc', 'q:a'];
  for (const uri of [...others, '', '/', '/x', 7, null, undefined, {}]) {
    assert.is(isAboutOneOf(uri, wanted), false, String(uri));
  }
});

test('the wholes of a part are itself, then those around it, with their mark and without', () => {
  assert.equal(wholesOf('a:b/c?x#y'), ['a:b/c?x#y', 'a:b', 'a:b/', 'a:b/c', 'a:b/c?', 'a:b/c?x', 'a:b/c?x#']);
  assert.equal(wholesOf('a/'), ['a/', 'a']);
  assert.equal(wholesOf('a'), ['a']);
  assert.equal(wholesOf('/'), ['/']);
  assert.equal(wholesOf(''), ['']);
});

test('however long a URI is, it has few wholes, the outer ones', () => {
  const wholes = wholesOf('a/'.repeat(1_000_000));
  assert.is(wholes.length, 1 + 2 * 64);
  assert.equal(wholes.slice(1, 4), ['a', 'a/', 'a/a']);
  const late = `${'a'.repeat(8 * 1024)}/b`;
  assert.is(isAboutOneOf(late, new Set([late.slice(0, -2)])), true, 'the longest that a client may name');
  assert.equal(wholesOf(`${'a'.repeat(10_000_000)}/b`).length, 1);
});

test.run();

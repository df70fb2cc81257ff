// Lists of globs: what they match, their order, their bounds.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { compileGlob, compileGlobs, GLOB_LIMITS, globIssue } from '../../../src/domain/accounts/globs.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('globs');
const NAMES = ['issues_list', 'issues_delete', 'Issues_list', 'repos/list', 'a.b', '?', 'x*y', 'grüße', '🎭'];

function chosen(...globs: readonly string[]): readonly string[] {
  return NAMES.filter(compileGlobs(globs));
}

test('match any text with *, / included, one character with ?, and case counts', () => {
  assert.equal(chosen('issues_*'), ['issues_list', 'issues_delete']);
  assert.equal(chosen('*list'), ['issues_list', 'Issues_list', 'repos/list']);
  assert.equal(chosen('a?b', 'gr???'), ['a.b', 'grüße']);
  assert.equal(chosen('?'), ['?', '🎭']);
  assert.equal(chosen('*'), NAMES);
});

test('have no other special characters', () => {
  assert.equal(chosen('a.b', 'a?c', '[a-z]*', '{a,b}*', '(issues)', '^issues', '\\*'), ['a.b']);
  assert.is(compileGlobs(['[ab]'])('[ab]'), true);
});

test('start from none, or from all when the first has a !; the last match decides', () => {
  assert.equal(chosen(), []);
  assert.equal(chosen('!*list'), ['issues_delete', 'a.b', '?', 'x*y', 'grüße', '🎭']);
  assert.equal(chosen('issues_*', '!issues_delete'), ['issues_list']);
  assert.equal(chosen('!issues_delete', 'issues_*'), NAMES);
  assert.equal(chosen('issues_delete', '!issues_*'), []);
  assert.equal(chosen('!*', 'a.b', '!a*', 'a?b'), ['a.b']);
});

test('agree with a regular expression for each glob', () => {
  // Also halves of a character, as in what servers send.
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '🎭', '\ud83c', '\udfad') });
  const glob = fc
    .tuple(fc.constantFrom('', '!'), fc.string({ unit: fc.constantFrom('a', 'b', '/', '🎭', '*', '?') }))
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(fc.array(glob, { maxLength: 6 }), text, (globs, name) => {
      const last = globs.findLast((each) => expressionOf(each).test(name));
      const isIn = last === undefined ? globs[0]?.startsWith('!') === true : !last.startsWith('!');
      assert.is(compileGlobs(globs)(name), isIn);
      for (const each of globs) assert.is(compileGlob(each)(name), expressionOf(each).test(name));
    }),
    { numRuns: 2_000 },
  );
});

test('agree with a regular expression for each long glob and text', () => {
  const unit = fc.constantFrom('a', 'b', '?', '🎭');
  const part = fc.oneof(fc.string({ unit, maxLength: 4 }), fc.string({ unit, minLength: 30, maxLength: 70 }));
  const parts = fc.array(part, { minLength: 1, maxLength: 4 });
  const gaps = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '🎭'), minLength: 60, maxLength: 90 }), {
    minLength: 5,
    maxLength: 5,
  });
  fc.assert(
    fc.property(parts, gaps, fc.boolean(), (found, between, isWhole) => {
      const glob = isWhole ? `*${found.join('*')}*` : found.join('*');
      const text = between.map((gap, at) => `${gap}${(found[at] ?? '').replaceAll('?', 'b')}`).join('');
      for (const each of [text, text.slice(0, -1), text.replaceAll('b', 'a')])
        assert.is(compileGlob(glob)(each), expressionOf(glob).test(each), glob);
    }),
    { numRuns: 500 },
  );
});

test('no lists of the hardest globs stop the process', () => {
  const text = 'a'.repeat(GLOB_LIMITS.textUnits);
  for (const glob of [
    `*${'a'.repeat(254)}b`,
    `*${'a'.repeat(126)}b*${'c'.repeat(126)}`,
    `*${'?'.repeat(252)}bb*`,
  ]) {
    const matches = compileGlobs(Array.from({ length: GLOB_LIMITS.count }, () => glob));
    for (let times = 0; times < 5; times += 1) assert.is(matches(text), false);
  }
});

test('a long list of short names takes a list of globs without ? no time to speak of', () => {
  const matches = compileGlobs(
    Array.from({ length: GLOB_LIMITS.count }, () => `*${'a'.repeat(31)}b${'a'.repeat(31)}`),
  );
  const { user } = process.cpuUsage();
  for (let times = 0; times < 10_000; times += 1) assert.is(matches('a'.repeat(64)), false);
  const ms = (process.cpuUsage().user - user) / 1_000;
  assert.ok(ms < 3_000, `${ms} ms`); // 300; it was 8,500
});

test('a long list of short names takes no list of globs with ? more than a few steps for each character', () => {
  for (const glob of [`*${'a?'.repeat(60)}b`, `*${'???????b*'.repeat(25)}`]) {
    const matches = compileGlobs(Array.from({ length: GLOB_LIMITS.count }, () => glob));
    const { user } = process.cpuUsage();
    for (let times = 0; times < 2_000; times += 1) assert.is(matches('a'.repeat(64)), false);
    const ms = (process.cpuUsage().user - user) / 1_000;
    assert.ok(ms < 3_000, `${glob}: ${ms} ms`); // 200; it was 8,000
  }
});

test('match hard texts in few steps, and no text over the bound', () => {
  const matches = compileGlobs([`${'*a'.repeat(100)}*b`]);
  assert.is(matches('a'.repeat(GLOB_LIMITS.textUnits)), false);
  assert.is(matches(`${'a'.repeat(GLOB_LIMITS.textUnits - 1)}b`), true);
  for (const globs of [['*'], ['!x']])
    assert.is(compileGlobs(globs)('a'.repeat(GLOB_LIMITS.textUnits + 1)), false);
});

test('are refused when they are empty, too long or no Unicode', () => {
  assert.equal(['a', '!a', '*', `!${'a'.repeat(255)}`].map(globIssue), [
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  assert.equal(
    ['', '!', 'a'.repeat(257), 'a\0', '\ud800'].map((glob) => globIssue(glob)?.type),
    ['string_too_short', 'string_too_short', 'string_too_long', 'string_unicode', 'string_unicode'],
  );
});

function expressionOf(glob: string): RegExp {
  const parts = glob.replace(/^!/, '').split(/([*?])/);
  const wildcard = (part: string) => (part === '*' ? '.*' : '.');
  const body = parts.map((part) => (/^[*?]$/.test(part) ? wildcard(part) : part.replace(/[/]/g, '\\/')));
  return new RegExp(`^${body.join('')}$`, 'su');
}

test.run();

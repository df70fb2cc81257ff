// What lists of templates, views and tools contain, alone and combined.

import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { compileGlob } from '../../../src/domain/accounts/globs.ts';
import {
  commonRights,
  isRestricted,
  mayCall,
  mayUse,
  mayUseView,
  type RightsLists,
  TOOL_ENTRY,
  templatesIn,
} from '../../../src/domain/accounts/rights.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('rights');
const TOOLS = ['git/issues_list', 'git/issues_delete', 'git/push', 'files/read', 'files/a/b'];

function tools(...lists: readonly (readonly string[])[]) {
  const rights = commonRights(...lists.map((entries) => ({ tools: entries })));
  return TOOLS.filter((each) => {
    const [template = '', ...name] = each.split('/');
    return mayCall(rights, template, name.join('/'));
  });
}

function templates(...levels: readonly RightsLists[]) {
  const rights = commonRights(...levels);
  return ['files', 'git', 'other'].filter((template) => mayUse(rights, template));
}

function views(...levels: readonly RightsLists[]) {
  const rights = commonRights(...levels);
  return ['desk', 'support'].filter((view) => mayUseView(rights, view));
}

test('contain everything without lists, and nothing with empty ones', () => {
  assert.equal(commonRights({}, {}), {});
  assert.equal([tools(), templates(), views()], [TOOLS, ['files', 'git', 'other'], ['desk', 'support']]);
  const none = { templates: [], views: [], tools: [] };
  assert.equal([tools([]), templates(none), views(none)], [[], [], []]);
});

test('limit the tools of the templates that a list names, in its order', () => {
  assert.equal(tools(['git/issues_*']), ['git/issues_list', 'git/issues_delete']);
  assert.equal(tools(['git/*', '!git/issues_delete', 'files/read']), [
    'git/issues_list',
    'git/push',
    'files/read',
  ]);
  assert.equal(tools(['!git/*', 'git/push']), ['git/push', 'files/read', 'files/a/b']);
  assert.equal(tools(['*/*', '!*/issues_*']), ['git/push', 'files/read', 'files/a/b']);
  assert.equal(tools(['files/a/*']), ['files/a/b']);
  assert.equal(tools(['*/push']), ['git/push']);
});

test('hide the templates of which no tool can be in the list', () => {
  assert.equal(templates({ tools: ['git/issues_*'] }), ['git']);
  assert.equal(templates({ tools: ['!git/*'] }), ['files', 'other']);
  assert.equal(templates({ tools: ['*/*', '!git/*', 'git/push', '!files/*'] }), ['git', 'other']);
  assert.equal(templates({ tools: [] }), []);
  assert.equal(templates({ templates: ['git'], tools: ['*/read'] }), ['git']);
});

test('are what all levels have', () => {
  assert.equal(tools(['git/*'], ['*/issues_*'], ['!*/*delete']), ['git/issues_list']);
  assert.equal(templates({ templates: ['git', 'files'] }, {}, { templates: ['files', 'other'] }), ['files']);
  assert.equal(views({ views: ['desk'] }, { views: ['desk', 'support'] }, {}), ['desk']);
});

test('contain all views only where a level has no list of templates either', () => {
  assert.equal(views({ templates: ['git'] }), []);
  assert.equal(views({ templates: [], views: ['desk'] }), ['desk']);
  assert.equal(views({ tools: ['git/*'] }), ['desk', 'support']);
  // A key has no view that its owner does not have.
  assert.equal(views({ views: ['desk'] }, { templates: ['git'] }), []);
});

test('agree with the last entry that matches, and with the tools that may be in a list', () => {
  const template = fc.constantFrom('a', 'b', 'c');
  const glob = fc.constantFrom('*', 'x', 'y', 'x*', '?');
  const entry = fc
    .tuple(fc.constantFrom('', '!'), fc.constantFrom('a', 'b', '*'), glob)
    .map(([sign, of, each]) => `${sign}${of}/${each}`);
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 5 }), template, (list, of) => {
      const rights = commonRights({ tools: list });
      const placed = list.map((each) => ({
        isNegative: each.startsWith('!'),
        of: each.replace(/^!/, '').split('/')[0],
        matches: compileGlob(each.replace(/^!?[^/]+[/]/, '')),
      }));
      // No entry names the last one.
      const isIn = ['x', 'y', 'xx', 'yyyy'].map((tool) => {
        const last = placed.findLast((each) => (each.of === '*' || each.of === of) && each.matches(tool));
        return last === undefined ? list[0]?.startsWith('!') === true : !last.isNegative;
      });
      assert.equal(
        ['x', 'y', 'xx', 'yyyy'].map((tool) => mayCall(rights, of, tool)),
        isIn,
      );
      if (isIn.includes(true)) assert.ok(mayUse(rights, of));
    }),
    { numRuns: 2_000 },
  );
});

test('are deeply equal with equal lists', () => {
  const of = (entry: string) => commonRights({ tools: [entry] });
  assert.ok(isDeepStrictEqual(of('git/*'), of('git/*')));
  assert.not.ok(isDeepStrictEqual(of('git/*'), of('git/?')));
});

test('are restricted by any list', () => {
  assert.equal([{}, { views: [] }, { tools: [] }, { templates: [] }].map(isRestricted), [
    false,
    true,
    true,
    true,
  ]);
});

test('have entries with a template, without wildcards but *, and a glob', () => {
  for (const entry of ['git/*', '!git/a/b', '*/x', '!*/?']) assert.match(entry, new RegExp(TOOL_ENTRY));
  for (const entry of ['', '!', 'git', 'git/', '/x', 'gi*/x', 'Git/x', '!!git/x', 'a\0/x', 'git/\0'])
    assert.not.match(entry, new RegExp(TOOL_ENTRY));
  assert.equal(templatesIn(['git/*', '*/x', '!files/y', 'git/z']), ['git', 'files']);
});

test.run();

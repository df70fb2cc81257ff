// A view while it is edited in the console: which tools are chosen, under which names, and that nothing else of its definition changes.

import * as assert from 'uvu/assert';
import { compileGlobs } from '../../src/domain/accounts/globs.ts';
import { CompiledView } from '../../src/protocol/aggregate/views/compiled-view.ts';
import {
  chooser,
  descriptionIn,
  hasHints,
  isConfirmed,
  NEW_VIEW,
  nameIn,
  sourceOf,
  type ViewDraft,
  type ViewSource,
  withAllTools,
  withNames,
  withTool,
  withWords,
} from '../../web/src/view-draft.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('the draft of a view');

const viewOf = (source: Partial<ViewSource>): ViewDraft => ({
  id: 'support',
  from: [{ template: 'github', ...source }],
});
const toolsOf = (view: ViewDraft): readonly string[] | undefined => sourceOf(view, 'github')?.tools;
const none = { resources: 'none', prompts: 'none' } as const;

test('a tool of a new template adds its tools only, and the last one removes the template', () => {
  const one = withTool(NEW_VIEW, 'github', 'list', true);
  assert.equal(one.from, [{ template: 'github', tools: ['list'], ...none }]);
  const two = withTool(one, 'github', 'get', true);
  assert.equal(toolsOf(two), ['list', 'get']);
  assert.equal(withTool(withTool(two, 'github', 'list', false), 'github', 'get', false).from, []);
});

test('a template whose resources are shown stays without tools', () => {
  const view = withTool(viewOf({ tools: ['list'] }), 'github', 'list', false);
  assert.equal(view.from, [{ template: 'github', tools: [] }]);
});

test('all tools of a template are those that it gets later, too', () => {
  const all = withAllTools(viewOf({ tools: ['list'], rename: { list: 'tickets' } }), 'github', true);
  assert.equal(all.from, [{ template: 'github', rename: { list: 'tickets' } }]);
  assert.equal(withAllTools(NEW_VIEW, 'github', true).from, [{ template: 'github', ...none }]);
  const but = withTool(all, 'github', 'drop', false);
  assert.equal(toolsOf(but), ['!drop']);
  assert.equal(withTool(but, 'github', 'drop', true), all);
  assert.equal(withAllTools(but, 'github', false).from, []);
});

test('globs stay, and a change back leaves no trace', () => {
  const view = viewOf({ tools: ['issues_*', '!issues_delete'] });
  const more = withTool(view, 'github', 'search', true);
  assert.equal(toolsOf(more), ['issues_*', '!issues_delete', 'search']);
  assert.equal(withTool(more, 'github', 'search', false), view);
  const fewer = withTool(view, 'github', 'issues_list', false);
  assert.equal(toolsOf(fewer), ['issues_*', '!issues_delete', '!issues_list']);
  assert.equal(withTool(fewer, 'github', 'issues_list', true), view);
  assert.equal(toolsOf(withTool(view, 'github', 'issues_delete', true)), ['issues_*']);
});

test('globs mean what they mean to the gateway', () => {
  const names = ['', 'a', 'b', 'a.b', 'a/b', 'axb', '😀', 'a😀b', '$', 'a\nb'];
  const globs = ['*', 'a', 'a*', 'a?b', '?', '*b', 'a.b', '$', '', '!a', '!*', '!?', '!a*b', '!'];
  for (const first of globs) {
    for (const second of globs) {
      const tools = [first, second];
      assert.equal(
        names.map(chooser({ template: 'github', tools })),
        names.map(compileGlobs(tools)),
        JSON.stringify(tools),
      );
    }
  }
});

test('hints leave out what they leave out for the gateway', () => {
  const values = [undefined, true, false];
  const tools = values.flatMap((readOnlyHint) =>
    values.flatMap((destructiveHint) =>
      values.flatMap((idempotentHint) =>
        values.map((openWorldHint, index) => ({
          name: `${readOnlyHint}-${destructiveHint}-${idempotentHint}-${index}`,
          annotations: JSON.parse(
            JSON.stringify({ readOnlyHint, destructiveHint, idempotentHint, openWorldHint }),
          ),
        })),
      ),
    ),
  );
  const plain = { name: 'plain' };
  const rename = { plain: 'reader', 'true-true-true-0': 'writer' };
  const annotate = { reader: { readOnlyHint: true }, writer: { readOnlyHint: false } };
  for (const only of [
    undefined,
    ...['readOnly', 'destructive', 'idempotent', 'openWorld'].flatMap((hint) => [
      { [hint]: true },
      { [hint]: false },
    ]),
    { readOnly: false, destructive: false },
  ]) {
    const source = { template: 'github', rename, annotate, ...(only && { only }) };
    const listed = [plain, ...tools];
    const chosen = new CompiledView({ id: 'support', from: [source] }).chosen('tools', 'github', listed);
    assert.equal(
      listed.filter((tool) => hasHints(source, tool)).map(({ name }) => name),
      chosen.map(({ own }) => own),
      JSON.stringify(only),
    );
  }
});

test('every change has its effect, and none on other tools', () => {
  const names = ['a', 'b', 'ab', 'c'];
  const lists = [
    undefined,
    [],
    ['a'],
    ['!a'],
    ['!a', 'a'],
    ['!a', 'c'],
    ['a*', '!ab'],
    ['!*', 'b'],
    ['*', '!?'],
  ];
  for (const tools of lists) {
    for (const own of names) {
      for (const isChosen of [true, false]) {
        const before = viewOf(tools === undefined ? {} : { tools });
        const after = chooser(sourceOf(withTool(before, 'github', own, isChosen), 'github'));
        const had = chooser(sourceOf(before, 'github'));
        const wanted = names.map((name) => (name === own ? isChosen : had(name)));
        assert.equal(names.map(after), wanted, JSON.stringify({ tools, own, isChosen }));
      }
    }
  }
});

test('a new name takes along what goes by it', () => {
  const annotate = { list: { readOnlyHint: true } };
  const view = { ...viewOf({ annotate }), limits: { list: { timeout: 5 } } };
  const one = withWords(view, 'github', 'list', { name: 'tickets', description: 'Lists them.' });
  assert.equal(one, {
    id: 'support',
    from: [
      {
        template: 'github',
        annotate: { tickets: annotate.list },
        rename: { list: 'tickets' },
        describe: { tickets: 'Lists them.' },
      },
    ],
    limits: { tickets: { timeout: 5 } },
  });
  const source = one.from[0] as ViewSource;
  assert.equal([nameIn(source, 'list'), descriptionIn(source, 'list')], ['tickets', 'Lists them.']);
  assert.equal(withWords(one, 'github', 'list', { name: '', description: '' }), view);
  const without = withTool(one, 'github', 'list', false);
  assert.equal(without.from, [{ template: 'github', tools: ['!list'] }]);
});

test('what goes by the listed name follows it: limits, what is always listed, and what is confirmed', () => {
  const settings = (name: string) => ({
    limits: { [name]: { timeout: 5 } },
    always: ['other', name],
    confirm: [name],
  });
  for (const [names, before, after] of [
    ['bare', 'list', 'tickets'],
    ['prefixed', 'github__list', 'github__tickets'],
  ] as const) {
    const view = { ...viewOf({}), names, ...settings(before) };
    const named = withWords(view, 'github', 'list', { name: 'tickets', description: '' });
    assert.equal(named, { ...view, from: named.from, ...settings(after) });
    assert.equal(withWords(named, 'github', 'list', { name: '', description: '' }), view);
  }
  const globs = { ...viewOf({}), always: ['list*'], limits: {} };
  const moved = withWords(globs, 'github', 'list_all', { name: 'tickets', description: '' });
  assert.equal([moved.always, moved.limits], [['list*', 'tickets'], {}]);
});

test('a new name of one tool leaves those confirmed that want the former one', () => {
  const from = ['desk', 'files', 'away'].map((template) => ({ template }));
  const view: ViewDraft = { id: 'support', from, confirm: ['drop'] };
  const known = new Map(['desk', 'files'].map((template) => [template, { tools: [{ name: 'drop' }] }]));
  const words = { name: 'remove', description: '' };
  assert.equal(withWords(view, 'desk', 'drop', words, known).confirm, ['remove', 'drop']);
  const unasked = withWords(view, 'desk', 'drop', { ...words, isConfirmed: false }, known);
  assert.equal(
    unasked.confirm?.filter((glob) => !glob.startsWith('!')),
    ['drop'],
  );
  known.delete('files');
  assert.equal(withWords(view, 'desk', 'drop', words, known).confirm, ['remove']);
  const prefixed = { ...view, names: 'prefixed', confirm: ['desk__drop'] } as const;
  assert.equal(withWords(prefixed, 'desk', 'drop', words, known).confirm, ['desk__remove']);
});

test('what goes by listed names follows another form of all names', () => {
  const from: readonly ViewSource[] = [
    { template: 'github', rename: { list: 'tickets' } },
    { template: 'files', tools: ['list', 'get'] },
  ];
  const view: ViewDraft = {
    ...{ id: 'support', from, names: 'bare' },
    limits: { tickets: { timeout: 5 }, get: { timeout: 6 }, gone: { timeout: 7 } },
    ...{ always: ['tickets'], confirm: ['get', 'dr*'] },
  };
  const tools = ['list', 'get', 'drop'].map((name) => ({ name }));
  const known = new Map([
    ['github', { tools }],
    ['files', { tools }],
    ['away', {}],
  ]);
  const prefixed = withNames(view, 'prefixed', known);
  assert.equal(prefixed, {
    ...{ id: 'support', from, names: 'prefixed' },
    limits: {
      gone: { timeout: 7 },
      github__tickets: { timeout: 5 },
      github__get: { timeout: 6 },
      files__get: { timeout: 6 },
    },
    ...{ always: ['github__tickets'], confirm: ['github__get', 'dr*', 'github__drop', 'files__get'] },
  });
  const bare = withNames(prefixed, 'bare', known);
  assert.equal(bare.limits, view.limits);
  assert.equal(bare.always, view.always);
  for (const { name } of tools)
    for (const source of from)
      assert.is(isConfirmed(bare, source, name), isConfirmed(view, source, name), name);
  assert.is(withNames(view, 'bare', known), view);
});

test('a tool may be named like a property of every object', () => {
  const view = withTool(NEW_VIEW, 'github', 'constructor', true);
  assert.is(nameIn(view.from[0] as ViewSource, 'constructor'), 'constructor');
  const named = withWords(view, 'github', 'constructor', { name: 'make', description: '' });
  assert.equal(named.from[0]?.rename, { constructor: 'make' });
});

test('calls of a tool are confirmed by its listed name, which follows its new name', () => {
  const view = viewOf({});
  const words = { name: '', description: '' };
  const isAsked = (draft: ViewDraft, own: string) =>
    isConfirmed(draft, sourceOf(draft, 'github') ?? { template: '' }, own);
  const asks = withWords(view, 'github', 'drop', { ...words, isConfirmed: true });
  assert.equal([asks.confirm, isAsked(asks, 'drop'), isAsked(asks, 'list')], [['drop'], true, false]);
  assert.equal(withWords(asks, 'github', 'drop', { ...words, isConfirmed: false }), view);
  assert.equal(withWords(asks, 'github', 'drop', { ...words, name: 'remove' }).confirm, ['remove']);
  const prefixed = { ...view, names: 'prefixed', confirm: ['github__drop', '!github__list'] } as const;
  const renamed = withWords(prefixed, 'github', 'list', { ...words, name: 'show' });
  assert.equal(renamed.confirm, ['github__drop', '!github__show']);
  const globs = { ...view, confirm: ['*', '!list'] };
  const moved = withWords(globs, 'github', 'drop', { ...words, name: 'list' });
  assert.ok(isAsked(moved, 'drop'), 'it still asks under its new name');
  assert.equal(withWords(globs, 'github', 'get', { ...words, isConfirmed: false }).confirm, [
    '*',
    '!list',
    '!get',
  ]);
  assert.equal(withWords(globs, 'github', 'list', { ...words, isConfirmed: true }).confirm, ['*']);
});

test.run();

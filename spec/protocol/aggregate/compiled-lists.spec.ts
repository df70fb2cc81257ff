// The memory of the lists that views compile: those that were listed last keep theirs, the others compile them again.

import { defer, of } from 'rxjs';
import * as assert from 'uvu/assert';
import { TaskScheduler } from '../../../src/domain/time/task-scheduler.ts';
import { NO_NAMES } from '../../../src/domain/views/view.ts';
import { allTemplates } from '../../../src/protocol/aggregate/all-templates.ts';
import { CompiledLists } from '../../../src/protocol/aggregate/views/compiled-lists.ts';
import { CompiledView } from '../../../src/protocol/aggregate/views/compiled-view.ts';
import { ViewDirectory } from '../../../src/protocol/aggregate/views/view-directory.ts';
import { suite } from '../../helpers/suite.ts';
import { ADA, aggregateLists, answered, CLIENT, ListingBackends } from '../listing-backends.ts';

const test = suite('compiled lists');

const TOOLS = Array.from({ length: 10 }, (_, index) => ({
  name: `tool-${index}`,
  inputSchema: { type: 'object' },
}));

/** Views over one template, of which about two and a half have room. */
function setUp() {
  const backends = new ListingBackends({ tools: TOOLS });
  backends.instead = of(answered({ tools: TOOLS })); // the same answer each time, as from a cache
  const isKept = (view: ViewDirectory) => view.knownTarget('tool-1', ADA) !== undefined;
  return { views: viewsOver(backends), isKept };
}

function viewsOver(backends: ListingBackends): ViewDirectory[] {
  const lists = aggregateLists({ backendsOf: () => backends });
  const ofAllViews = new CompiledLists(30 * 1_280);
  const viewOf = (id: string) => {
    const compiled = new CompiledView({ id, from: [{ template: 't', tools: ['*'] }] });
    return new ViewDirectory({
      ...{ lists, compiledLists: ofAllViews, scheduler: new TaskScheduler(), templates: () => ['t'] },
      ...{ view: () => compiled, nameTargets: () => NO_NAMES, keepTargets: () => {}, version: () => 0 },
    });
  };
  return ['a', 'b', 'c'].map(viewOf);
}

test('the view that was listed first makes room', async () => {
  const { views, isKept } = setUp();
  for (const view of views) assert.is((await view.listing('tools', CLIENT)).items.length, 10);
  assert.equal(views.map(isKept), [false, true, true]);
});

test('a list makes a view one of the last again, and a view without its list finds its tools by listing', async () => {
  const { views, isKept } = setUp();
  const [a, b, c] = views;
  for (const view of [a, b, a, c]) await view?.listing('tools', CLIENT);
  assert.equal(views.map(isKept), [true, false, true]);
  assert.equal((await b?.targetOfName('tool-1', 'tools', CLIENT))?.name, 'tool-1');
  assert.equal(views.map(isKept), [false, true, true]);
});

test('a deleted view takes no room', async () => {
  const { views, isKept } = setUp();
  const [a, b, c] = views;
  for (const view of [a, b]) await view?.listing('tools', CLIENT);
  b?.close();
  await c?.listing('tools', CLIENT);
  assert.is(a && isKept(a), true);
});

test('lists of one view that take much memory make room for each other', async () => {
  const backends = new ListingBackends({});
  let times = 0;
  backends.instead = defer(() => {
    times += 1;
    return of(answered({ tools: [{ ...TOOLS[1], description: `${times} ${'x'.repeat(10_000)}` }] }));
  });
  const [view] = viewsOver(backends);
  const owners = ['user:a', 'user:b', 'user:c'].map((id) => ({ id }));
  for (const owner of owners) await view?.listing('tools', { ...CLIENT, owner });
  const kept = owners.map((owner) => view?.knownTarget('tool-1', owner) !== undefined);
  assert.equal(kept, [false, false, true]);
});

test('a list belongs to its template, also when another one has an equal list', async () => {
  const backendsOf = () => new ListingBackends({ tools: TOOLS });
  const all = ['a', 'b'];
  const lists = aggregateLists({ backendsOf });
  const { directory } = allTemplates(lists, () => all, new TaskScheduler(), { names: 'bare' });
  const ofOnly = (template: string) => ({
    ...CLIENT,
    owner: { id: `user:${template}`, templates: new Set([template]) },
  });
  for (const template of all)
    assert.is((await directory.targetOfName('tool-1', 'tools', ofOnly(template)))?.template, template);
});

test.run();

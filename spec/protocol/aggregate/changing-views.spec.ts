// Names of a view that are looked up while the view, or a list of its templates, changes.

import { of } from 'rxjs';
import * as assert from 'uvu/assert';
import { TaskScheduler } from '../../../src/domain/time/task-scheduler.ts';
import { NO_NAMES, type ViewDefinition } from '../../../src/domain/views/view.ts';
import { CompiledView } from '../../../src/protocol/aggregate/views/compiled-view.ts';
import { ViewDirectory } from '../../../src/protocol/aggregate/views/view-directory.ts';
import { suite } from '../../helpers/suite.ts';
import { aggregateLists, answered, CLIENT, ListingBackends } from '../listing-backends.ts';

const test = suite('views that change');

const TOOLS = ['kept', 'gone'].map((name) => ({ name, inputSchema: { type: 'object' } }));

/** A view over one template. `onCompile` is called while its list is compiled, and returns another definition of it, if any. */
function viewThat(onCompile: (times: number) => Partial<ViewDefinition> | undefined): ViewDirectory {
  const backends = new ListingBackends({ tools: TOOLS });
  backends.instead = of(answered({ tools: TOOLS }));
  const definition: ViewDefinition = { id: 'v', from: [{ template: 't' }] };
  let view = new CompiledView(definition);
  let changes = 0;
  return new ViewDirectory({
    ...{ lists: aggregateLists({ backendsOf: () => backends }), scheduler: new TaskScheduler() },
    ...{ templates: () => ['t'], nameTargets: () => NO_NAMES, keepTargets: () => {} },
    view: () => view,
    version: () => changes,
    waiting: async () => {
      changes += 1;
      const changed = onCompile(changes);
      if (changed !== undefined) view = new CompiledView({ ...definition, ...changed });
      return new Map();
    },
  });
}

test('a tool is found although a list changes each time it is compiled', async () => {
  const view = viewThat(() => undefined);
  for (let call = 0; call < 2; call += 1)
    assert.is((await view.targetOfName('kept', 'tools', CLIENT))?.name, 'kept');
});

test('a tool that the view does not take any more is not found', async () => {
  const view = viewThat((times) =>
    times === 1 ? { from: [{ template: 't', tools: ['*', '!gone'] }] } : undefined,
  );
  assert.is(await view.targetOfName('gone', 'tools', CLIENT), undefined);
  assert.is((await view.targetOfName('kept', 'tools', CLIENT))?.name, 'kept');
});

test.run();

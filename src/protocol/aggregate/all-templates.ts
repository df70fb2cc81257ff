// The selection of `/mcp`: all templates that a caller may use.

import { merge, NEVER, type Observable } from 'rxjs';
import { mayUse } from '../../domain/accounts/rights.ts';
import type { Owner } from '../../domain/mcp/client.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { NO_NAMES } from '../../domain/views/view.ts';
import type { AggregateLists } from './lists/aggregate-lists.ts';
import { AggregateDirectory, type Directory } from './lists/directory.ts';
import type { Presentation, Selection } from './selection.ts';
import { CompiledView } from './views/compiled-view.ts';
import { ViewDirectory } from './views/view-directory.ts';

/**
 * All templates that a caller may use. `templates`: all that exist; the same array until that changes. `listChanges$`:
 * hot, lists of templates.
 */
export function allTemplates(
  lists: AggregateLists,
  templates: () => readonly string[],
  scheduler: TaskScheduler,
  presentation?: Presentation,
  listChanges$: Observable<unknown> = NEVER,
): Selection {
  const ofOwner = (owner: Owner) => templates().filter((template) => mayUse(owner, template));
  const directory =
    presentation?.names === 'bare'
      ? bareDirectory({ lists, scheduler }, templates, ofOwner, listChanges$)
      : new AggregateDirectory(lists, ofOwner, scheduler);
  return {
    view: undefined,
    directory,
    templates: ofOwner,
    includes: mayUse,
    changed$: NEVER,
    presentation: () => presentation,
  };
}

/** The directory of all templates under their own names. No names are kept: they are the same on every node. Source: ADR 93. */
function bareDirectory(
  deps: { readonly lists: AggregateLists; readonly scheduler: TaskScheduler },
  templates: () => readonly string[],
  ofOwner: (owner: Owner) => readonly string[],
  listChanges$: Observable<unknown>,
): Directory {
  let known: { readonly names: readonly string[]; readonly view: CompiledView } | undefined;
  const view = (): CompiledView => {
    const names = templates();
    if (known?.names !== names)
      known = { names, view: new CompiledView({ id: '', from: names.map((template) => ({ template })) }) };
    return known.view;
  };
  let version = 0;
  merge(listChanges$, deps.lists.late$).subscribe(() => {
    version += 1;
  });
  return new ViewDirectory({
    ...deps,
    view,
    templates: ofOwner,
    isOfAllTemplates: true,
    nameTargets: () => NO_NAMES,
    keepTargets: () => undefined,
    version: () => version,
  });
}

// An aggregate for specs that bring the backends of each template.

import { Subject } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ListChange } from '../../../src/domain/mcp/mcp.ts';
import type { AllSessions } from '../../../src/domain/sessions/all-sessions.ts';
import type { TaskScheduler } from '../../../src/domain/time/task-scheduler.ts';
import { AggregateBackends } from '../../../src/protocol/aggregate/aggregate-backends.ts';
import { allTemplates } from '../../../src/protocol/aggregate/all-templates.ts';
import type { AggregateLists } from '../../../src/protocol/aggregate/lists/aggregate-lists.ts';
import { ToolIndexes } from '../../../src/protocol/aggregate/lists/findable-tools.ts';
import type { Selection } from '../../../src/protocol/aggregate/selection.ts';
import type { Backends } from '../../../src/protocol/endpoint-backends.ts';
import { untimedScheduler } from '../../helpers/time/turns.ts';
import { aggregateLists, CLOCK, NO_SESSIONS } from '../listing-backends.ts';

interface AggregateOptions {
  readonly templates: () => readonly string[];
  readonly backendsOf: (template: string) => Backends;
  /** Default: one that keeps nothing. */
  readonly sessions?: AllSessions;
  /** Default: everything. */
  readonly selectionOf?: (
    lists: AggregateLists,
    templates: () => readonly string[],
    scheduler: TaskScheduler,
  ) => Selection;
}

/** The backends of all these templates together, and the changes of their lists, which the spec emits. */
export function aggregateOf({
  templates,
  backendsOf,
  sessions = NO_SESSIONS,
  selectionOf = allTemplates,
}: AggregateOptions) {
  const listChanges$ = new Subject<ListChange>();
  const scheduler = untimedScheduler();
  const lists = aggregateLists({ backendsOf, listChanges$, scheduler });
  const reported: unknown[] = [];
  const aggregated = new AggregateBackends({
    ...CLOCK,
    hasTemplate: (template) => templates().includes(template),
    backendsOf,
    sessions,
    listChanges$,
    lists,
    selection: selectionOf(lists, templates, scheduler),
    indexes: new ToolIndexes({ ...CLOCK, scheduler }),
    scheduler,
    timeoutFor: () => 30_000,
    movesUnsafe: () => false,
    onFault: (fault) => reported.push(fault),
  });
  return { aggregated, listChanges$, reported };
}

/** The options for templates that do not change. */
export function fixed<B extends Backends>(all: Readonly<Record<string, B>>): AggregateOptions {
  const backendsOf = (template: string): B => {
    const backends = all[template];
    assert.ok(backends, template);
    return backends;
  };
  return { templates: () => Object.keys(all), backendsOf };
}

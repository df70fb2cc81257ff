// Which definitions of the tools of one template may be used: those that are approved for the template, if it is pinned, and for
// the pinned view that asks. tool-approvals.ts makes one again when a template or view is pinned or released. Source: ADR 238.

import { withOwnHints } from '../../actors/instances/tool-hints.ts';
import type { ListedDigests, ToolDigests, ToolTrust } from '../../actors/instances/tool-trust.ts';
import { groupsToMatch } from '../../domain/accounts/globs.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import type { Tool } from '../../domain/mcp/mcp.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { itemKey } from '../../domain/views/approval.ts';
import type { ToolHints } from '../../domain/views/view.ts';
import { checkedItem } from '../../protocol/aggregate/lists/acceptable-items.ts';
import type { CompiledView } from '../../protocol/aggregate/views/compiled-view.ts';
import { digestOf, type PinnedScope } from './pinned-scope.ts';

/** A view that is pinned, and what it takes of its templates. */
export interface PinnedView {
  readonly scope: PinnedScope;
  readonly choices: CompiledView;
}

interface TrustComponents {
  readonly template: string;
  readonly own: PinnedScope | undefined;
  readonly views: readonly PinnedView[];
  readonly scheduler: TaskScheduler;
  /** The annotations that the template sets now. */
  readonly hints: () => Readonly<Record<string, ToolHints>>;
  /** A tool waits for approval since now. */
  readonly onWaiting: () => void;
}

/** The trust in the definitions of one template: its own, and that of each pinned view that has it. */
export class TemplateTrust implements ToolTrust {
  readonly #components: TrustComponents;
  readonly #views: ReadonlyMap<string, PinnedView>;

  constructor(components: TrustComponents) {
    this.#components = components;
    this.#views = new Map(components.views.map((view) => [view.scope.id, view]));
  }

  isRequiredFor(view: string | undefined): boolean {
    return this.#components.own !== undefined || (view !== undefined && this.#views.has(view));
  }

  async digestsOf(tools: readonly Tool[]): Promise<ListedDigests> {
    const { hints, scheduler } = this.#components;
    const digests = new Map<Tool, ToolDigests>();
    await scheduler.each(tools, (tool) => {
      const own = digestOf(tool as JsonObject);
      const [item = tool] = shownItems(tool, hints());
      digests.set(tool, { own, shown: item === tool ? own : digestOf(item as JsonObject) });
    });
    return digests;
  }

  isApproved(tool: string, digests: ToolDigests, view?: string): boolean {
    if (this.#components.own?.has(tool, digests.own) === false) return false;
    const pinned = view === undefined ? undefined : this.#views.get(view);
    return pinned === undefined || this.#hasIn(pinned, tool, digests);
  }

  async areUsedEverywhere(digests: ListedDigests): Promise<boolean> {
    const { own, template, scheduler } = this.#components;
    const isUsed = ([{ name }, each]: readonly [Tool, ToolDigests]) =>
      own?.has(name, each.own) !== false &&
      [...this.#views.values()].every(
        (view) => !view.choices.takes('tools', template, name) || this.#hasIn(view, name, each),
      );
    let areUsed = true;
    await scheduler.each(
      groupsToMatch(digests, ([{ name }]) => name),
      (group) => {
        areUsed &&= group.every(isUsed);
      },
    );
    return areUsed;
  }

  async listed(digests: ListedDigests, extent: 'all' | 'some'): Promise<void> {
    const { template, own, views, hints, onWaiting, scheduler } = this.#components;
    const asListed = [...digests].map(([tool, { own: digest }]) => {
      return { tool: tool.name, digest, definition: tool as JsonObject };
    });
    let isNew = (await own?.listed(asListed, extent)) ?? false;
    const shown = new Map<JsonObject, string>();
    if (views.length > 0)
      await scheduler.each(digests, ([tool, { shown: digest }]) => {
        for (const item of shownItems(tool, hints())) shown.set(item, digest);
      });
    const items = [...shown.keys()];
    for (const { scope, choices } of views) {
      await choices.choose('tools', template, items, scheduler);
      const chosen = choices.chosen('tools', template, items).map(({ own: name, listed }) => {
        return { tool: itemKey(template, name), digest: shown.get(listed) ?? '', definition: listed };
      });
      // A view is listed with all of its templates.
      isNew = (await scope.listed(chosen, 'some')) || isNew;
    }
    if (isNew) onWaiting();
  }

  #hasIn({ scope }: PinnedView, tool: string, { shown }: ToolDigests): boolean {
    return scope.has(itemKey(this.#components.template, tool), shown);
  }
}

/** The tool as the lists of aggregates show it; none if they do not. */
function shownItems(tool: Tool, hints: Readonly<Record<string, ToolHints>>): readonly JsonObject[] {
  const checked = checkedItem('tools', withOwnHints(tool, hints));
  return 'item' in checked ? [checked.item] : [];
}

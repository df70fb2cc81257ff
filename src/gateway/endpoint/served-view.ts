// One view while it is in use, or a draft of one: its definition, compiled; its names, which are stored once they are
// given; its lists, and the backends that serve its clients.

import { Subject } from 'rxjs';
import type { Fleet } from '../../actors/fleet/fleet.ts';
import { ANONYMOUS } from '../../domain/accounts/principal.ts';
import { mayUseInView } from '../../domain/accounts/rights.ts';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import { hasCode } from '../../domain/errors/errors.ts';
import type { Client } from '../../domain/mcp/client.ts';
import { type ListField, MODERN_VERSIONS, NOTICED_LISTS } from '../../domain/mcp/mcp.ts';
import { GATEWAY_INFO } from '../../domain/version.ts';
import { itemKey } from '../../domain/views/approval.ts';
import {
  type CallLimiter,
  type NameTargets,
  NO_NAMES,
  type StoredView,
  type ViewProblem,
} from '../../domain/views/view.ts';
import { AggregateBackends, type AggregateDeps } from '../../protocol/aggregate/aggregate-backends.ts';
import type { Selection } from '../../protocol/aggregate/selection.ts';
import { CompiledView } from '../../protocol/aggregate/views/compiled-view.ts';
import { ViewDirectory, type ViewDirectoryOptions } from '../../protocol/aggregate/views/view-directory.ts';
import { countCall } from '../../protocol/aggregate/views/view-limits.ts';
import { viewProblems } from '../../protocol/aggregate/views/view-problems.ts';
import type { ViewRegistry } from '../../registry/kinds/view-registry.ts';
import type { ToolApprovals } from '../../registry/pinned/tool-approvals.ts';

export interface ServedViewDeps {
  readonly registry: ViewRegistry;
  readonly fleet: Pick<Fleet, 'templates'>;
  readonly aggregate: Omit<AggregateDeps, 'selection'>;
  readonly callLimiter: CallLimiter;
  readonly approvals: Pick<ToolApprovals, 'waitingIn'>;
}

/** The wait before names that could not be stored are stored again, in ms. */
const RETRY_MS = 5_000;

/** A caller over HTTP, to which tools are listed as a client of the newest revision gets them. */
export const GATEWAY_PROFILE = {
  protocolVersion: MODERN_VERSIONS[0],
  capabilities: {},
  clientInfo: GATEWAY_INFO,
};

/** The gateway itself: names and approvals do not depend on the rights of a caller. */
const GATEWAY: Client = { owner: ANONYMOUS, profile: GATEWAY_PROFILE };

/** Serves its clients by AggregateBackends, as `/mcp` does, with a selection of its own. */
export class ServedView {
  readonly directory: ViewDirectory;
  readonly backends: AggregateBackends;
  names: NameTargets;
  readonly #id: string;
  readonly #deps: ServedViewDeps;
  readonly #isDraft: boolean;
  readonly #changed$ = new Subject<ListField>();
  #compiled: CompiledView;
  #version = 0;
  #isSaving = false;
  /** The names that were given here and are not stored yet. */
  #unsaved: NameTargets = NO_NAMES;
  #endRetry = (): void => {};
  #isClosed = false;
  #isDeleted = false;

  /** `lists`: those of all views; undefined for a draft. */
  constructor(
    { definition, names }: StoredView,
    deps: ServedViewDeps,
    lists?: ViewDirectoryOptions['compiledLists'],
  ) {
    const { fleet } = deps;
    const isDraft = lists === undefined;
    this.#id = definition.id;
    this.#deps = deps;
    this.#isDraft = isDraft;
    this.#compiled = new CompiledView(definition);
    this.names = names;
    const templates = () => this.templates.filter((template) => fleet.templates.has(template));
    this.directory = new ViewDirectory({
      lists: deps.aggregate.lists,
      scheduler: deps.aggregate.scheduler,
      templates,
      compiledLists: lists,
      view: () => this.#compiled,
      nameTargets: () => this.names,
      keepTargets: (list, targets) => this.#keepTargets(list, targets),
      version: () => this.#version,
      waiting: isDraft ? undefined : (chosen) => deps.approvals.waitingIn(this.#id, chosen),
    });
    const selection: Selection = {
      view: this.#id,
      directory: this.directory,
      templates: (owner) => templates().filter((template) => mayUseInView(owner, template)),
      changed$: this.#changed$,
      includes: (owner, template) =>
        this.#compiled.templates.includes(template) && mayUseInView(owner, template),
      untilLost: () => {
        const compiled = this.#compiled;
        return (template, request) =>
          !this.#isDeleted && (this.#compiled === compiled || this.#has(template, request, compiled));
      },
      presentation: () => this.#compiled.presentation,
      limitOf: (listed) => this.#compiled.limits.get(listed),
      countCall: (tool, { id: callerId }, most) =>
        countCall(deps.callLimiter, { view: this.#id, tool, callerId, most }),
    };
    this.backends = new AggregateBackends({ ...deps.aggregate, selection });
  }

  get templates(): readonly string[] {
    return this.#compiled.templates;
  }

  /** True for a tool that the view has if its server lists it, whatever its hints are. */
  takes(template: string, tool: string): boolean {
    return this.#compiled.takes('tools', template, tool);
  }

  /** The name of a tool that is in no list now. */
  wishOf({ template, tool }: { readonly template: string; readonly tool: string }): string {
    return this.#compiled.wishOf(template, tool);
  }

  noteChange(template: string): void {
    if (this.#compiled.templates.includes(template)) this.#version += 1;
  }

  /** Clients may have seen names that are not stored yet: these stay, if the view still has their templates. */
  change({ definition, names }: StoredView): void {
    this.#compiled = new CompiledView(definition);
    if (this.#unsaved !== NO_NAMES) this.#unsaved = ofTemplates(this.#unsaved, new Set(this.templates));
    this.names = joined(this.#unsaved, names);
    this.#version += 1;
    for (const list of NOTICED_LISTS) this.#changed$.next(list);
  }

  approvalsChanged(): void {
    this.#version += 1;
    this.#changed$.next('tools');
  }

  /** The names of the tools of the view, also of those that wait for approval, by key (itemKey). */
  async toolNames(): Promise<ReadonlyMap<string, string>> {
    const { chosen, waiting } = await this.directory.survey('tools', GATEWAY);
    const all = [...chosen, ...waiting.keys()];
    const names = this.directory.namesOf(all);
    return new Map(all.map(({ template, own }, index) => [itemKey(template, own), names[index] ?? own]));
  }

  /** Names that could not be stored are not stored later. */
  endSaving(): void {
    this.#isClosed = true;
    this.#endRetry();
  }

  close(): void {
    this.#isDeleted = true;
    this.endSaving();
    this.directory.close();
    this.backends.close('viewDeleted');
  }

  /** Reads all lists. */
  async survey(): Promise<ViewProblem[]> {
    const [tools, prompts, resources] = await Promise.all([
      this.directory.survey('tools', GATEWAY),
      this.directory.survey('prompts', GATEWAY),
      this.directory.survey('resources', GATEWAY),
    ]);
    const { fleet, registry, aggregate } = this.#deps;
    const kindOf = (name: string) => {
      if (fleet.templates.has(name)) return fleet.templates.instances(name).length > 0 ? 'template' : 'empty';
      return registry.find(name) === undefined ? undefined : 'view';
    };
    return viewProblems(this.#compiled, { tools, prompts, resources }, kindOf, aggregate.scheduler);
  }

  /** True when the changed view has what the request names, which the view had `before`. */
  #has(template: string, { method, params }: ExchangeRequest, before: CompiledView): boolean {
    const { name, uri } = params ?? {};
    if (!this.templates.includes(template)) return false;
    if (method === 'tools/call') return this.directory.hasTool(template, String(name));
    if (method === 'prompts/get') return this.#compiled.takes('prompts', template, String(name));
    // A page of a tool is read although the view may not have it as a resource.
    return typeof uri !== 'string' || !before.mayRead(template, uri) || this.#compiled.mayRead(template, uri);
  }

  #keepTargets(list: 'tools' | 'prompts', targets: NameTargets['tools']): void {
    const given = { ...NO_NAMES, [list]: targets };
    this.names = joined(this.names, given);
    this.#unsaved = joined(this.#unsaved, given);
    if (!this.#isDraft && !this.#isSaving) void this.#saveNames();
  }

  /** Stores the names that were given. Never rejects: those that could not be stored are stored later. */
  async #saveNames(): Promise<void> {
    const { registry } = this.#deps;
    this.#endRetry();
    this.#isSaving = true;
    try {
      while (this.#unsaved !== NO_NAMES) {
        const saving = this.#unsaved;
        // The names that another node stored first count; they are in force here then.
        await registry.saveNames(this.#id, (stored) => joined(saving, stored));
        if (this.#unsaved === saving) this.#unsaved = NO_NAMES;
        const stored = registry.find(this.#id)?.names ?? this.names;
        this.names = joined(this.#unsaved, stored);
      }
    } catch (thrown) {
      if (!hasCode(thrown, 'SHUTTING_DOWN')) this.#retryLater();
    }
    this.#isSaving = false;
  }

  #retryLater(): void {
    const { clock } = this.#deps.aggregate;
    if (!this.#isClosed) this.#endRetry = clock.background.alarm(RETRY_MS, () => void this.#saveNames());
  }
}

/** Both; a name that both have has the target of `first`. */
function joined(others: NameTargets, first: NameTargets): NameTargets {
  return {
    tools: { ...others.tools, ...first.tools },
    prompts: { ...others.prompts, ...first.prompts },
  };
}

function ofTemplates({ tools, prompts }: NameTargets, templates: ReadonlySet<string>): NameTargets {
  const kept = (targets: NameTargets['tools']) =>
    Object.fromEntries(
      Object.entries(targets).filter(([, target]) => templates.has(target.slice(0, target.indexOf('/')))),
    );
  return { tools: kept(tools), prompts: kept(prompts) };
}

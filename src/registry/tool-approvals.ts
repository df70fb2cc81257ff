// The approved definitions of the tools of pinned templates, and those that wait for approval. A template without an approval was just
// pinned: what is listed first is approved. Source: ADR 238.

import { createHash } from 'node:crypto';
import type { ToolCache } from '../actors/instances/tool-cache.ts';
import type { ToolTrust, TrustOf } from '../actors/instances/tool-trust.ts';
import type { TemplateSettings } from '../balancing/load-balancer.ts';
import { type Approval, approvedPart, MAX_DIGESTS, type NewApproval } from '../domain/approval.ts';
import type { Clock } from '../domain/clock.ts';
import { toolNotFound } from '../domain/error-catalogue.ts';
import type { GatewayEvent } from '../domain/events.ts';
import { canonicalText, type JsonObject } from '../domain/json.ts';
import type { Tool, WithheldItem } from '../domain/mcp.ts';
import { type ApprovalStore, MAX_APPENDED } from '../persistence/store.ts';

/** UTF-16 units of the definitions of one template that wait for approval. Those beyond are withheld, and can be approved later. */
const MAX_WAITING_UNITS = 16 * 1024 * 1024;

export interface ToolApprovalsDeps {
  readonly store: ApprovalStore;
  readonly emit: (event: GatewayEvent) => void;
  readonly clock: Pick<Clock, 'wall'>;
  /** What is approved of a template has changed. */
  readonly onChanged: (template: string) => void;
}

export interface ToolState {
  readonly tool: string;
  readonly state: 'approved' | 'new' | 'changed';
  /** The newest approved definition; absent for a new tool. */
  readonly approved?: JsonObject;
  /** The newest one that waits for approval; absent for an approved tool. */
  readonly listed?: JsonObject;
}

export class ToolApprovals {
  readonly #deps: ToolApprovalsDeps;
  readonly #pinned = new Map<string, PinnedTemplate>();
  /** By scope, as they were read from the store last; undefined before. */
  #stored: ReadonlyMap<string, readonly Approval[]> | undefined;

  constructor(deps: ToolApprovalsDeps) {
    this.#deps = deps;
  }

  readonly trustOf: TrustOf = (template) => this.#pinned.get(template);

  /** Until `read`, or `settle`, no definition of a template that is pinned now is trusted. */
  setPinned(template: string, isPinned: boolean): void {
    const isKnown = this.#pinned.has(template);
    if (isPinned === isKnown) return;
    if (isPinned) {
      const pinned = new PinnedTemplate(template, this.#deps, (first) => this.#approveFirst(first));
      if (this.#stored !== undefined) pinned.replace(this.#stored.get(template) ?? []);
      this.#pinned.set(template, pinned);
    } else this.#pinned.delete(template);
    this.#deps.onChanged(template);
  }

  /** Reads the approvals from the store if a template is pinned, or will be with these settings. DATABASE_UNAVAILABLE. */
  async read(templates: readonly TemplateSettings[]): Promise<void> {
    if (this.#pinned.size === 0 && !templates.some(({ loadBalancer }) => loadBalancer.approve === 'pinned'))
      return;
    this.#stored = Map.groupBy(await this.#deps.store.list(), ({ scope }) => scope);
    for (const [template, pinned] of this.#pinned)
      if (pinned.replace(this.#stored.get(template) ?? [])) this.#deps.onChanged(template);
  }

  /**
   * The template may have been pinned or released here: approves what its instances list now, or, if none does, what one lists first;
   * or drops what was approved. Resolves with the revision of a change. DATABASE_UNAVAILABLE.
   */
  async settle(
    template: string,
    wasPinned: boolean,
    instances: readonly { readonly tools: Pick<ToolCache, 'lookUp'> | undefined }[],
  ): Promise<number | undefined> {
    const pinned = this.#pinned.get(template);
    if (pinned === undefined) return wasPinned ? this.#deps.store.deleteOf(template) : undefined;
    if (wasPinned) return undefined;
    pinned.replace([]);
    pinned.isGathering = true;
    try {
      await Promise.all(instances.map(({ tools }) => tools?.lookUp()));
    } finally {
      pinned.isGathering = false;
    }
    return this.#save(pinned, pinned.waiting());
  }

  /** The tools of a pinned template, sorted by name. DATABASE_UNAVAILABLE. */
  async states(template: string): Promise<ToolState[]> {
    const pinned = this.#pinned.get(template);
    return pinned === undefined ? [] : pinned.states(await this.#deps.store.definitionsOf(template));
  }

  readonly withheldOf = (template: string): readonly WithheldItem[] =>
    this.#pinned.get(template)?.withheld() ?? [];

  /**
   * Approves what waits of these tools, or of all; resolves with the names of those that waited. TOOL_NOT_FOUND for a tool that is neither
   * listed nor approved; DATABASE_UNAVAILABLE.
   */
  async approve(template: string, tools?: readonly string[]): Promise<readonly string[]> {
    const pinned = this.#pinned.get(template);
    if (pinned === undefined) return [];
    const unknown = tools?.find((tool) => !pinned.knows(tool));
    if (unknown !== undefined) throw toolNotFound(unknown, template);
    const approvals = pinned.waiting(tools);
    await this.#save(pinned, approvals);
    return approvals.map(({ tool }) => tool);
  }

  async #save(pinned: PinnedTemplate, approvals: readonly NewApproval[]): Promise<number | undefined> {
    const { store, emit, clock, onChanged } = this.#deps;
    let revision: number | undefined;
    for (let at = 0; at < approvals.length; at += MAX_APPENDED)
      revision = await store.save(approvals.slice(at, at + MAX_APPENDED));
    pinned.add(approvals);
    const { template } = pinned;
    for (const { tool } of approvals) emit({ type: 'tool.approved', atMs: clock.wall(), template, tool });
    if (approvals.length > 0) onChanged(template);
    return revision;
  }

  /** The next listing tries again when the store fails. */
  #approveFirst(pinned: PinnedTemplate): void {
    this.#save(pinned, pinned.waiting()).catch(() => undefined);
  }
}

interface Waiting {
  /** By digest, the newest last. */
  readonly definitions: Map<string, JsonObject>;
}

class PinnedTemplate implements ToolTrust {
  readonly template: string;
  readonly #deps: Pick<ToolApprovalsDeps, 'emit' | 'clock' | 'onChanged'>;
  readonly #onFirst: (pinned: PinnedTemplate) => void;
  /** By tool, the approved digests; undefined before they were read from the store. */
  #approved: Map<string, readonly string[]> | undefined;
  readonly #waiting = new Map<string, Waiting>();
  #units = 0;
  /** More instances are about to list their tools. */
  isGathering = false;

  constructor(
    template: string,
    deps: Pick<ToolApprovalsDeps, 'emit' | 'clock' | 'onChanged'>,
    onFirst: (pinned: PinnedTemplate) => void,
  ) {
    this.template = template;
    this.#deps = deps;
    this.#onFirst = onFirst;
  }

  digestOf(tool: Tool): string {
    return createHash('sha256')
      .update(canonicalText(approvedPart(tool as JsonObject)))
      .digest('hex');
  }

  has(tool: string, digest: string): boolean {
    if (this.#isFirst) return true;
    return this.#approved?.get(tool)?.includes(digest) === true;
  }

  listed(tools: readonly Tool[]): void {
    const isNew = tools.map((tool) => this.#note(tool)).some(Boolean);
    // Stored lists still have the definition that was approved.
    if (isNew) this.#deps.onChanged(this.template);
    if (this.#isFirst && !this.isGathering && this.#waiting.size > 0) this.#onFirst(this);
  }

  /** True when something changed. */
  replace(approvals: readonly Approval[]): boolean {
    const next = new Map(approvals.map(({ tool, digests }) => [tool, digests]));
    const isSame = JSON.stringify([...next].sort()) === JSON.stringify([...(this.#approved ?? [])].sort());
    const wasRead = this.#approved !== undefined;
    this.#approved = next;
    for (const [tool, digests] of next) this.#drop(tool, digests);
    return !isSame || !wasRead;
  }

  add(approvals: readonly Approval[]): void {
    this.#approved ??= new Map();
    for (const { tool, digests } of approvals) {
      this.#approved.set(tool, digests);
      this.#drop(tool, digests);
    }
  }

  knows(tool: string): boolean {
    return this.#waiting.has(tool) || this.#approved?.has(tool) === true;
  }

  /** What an approval of these tools, or of all that wait, would store. */
  waiting(tools: Iterable<string> = this.#waiting.keys()): NewApproval[] {
    return [...tools].flatMap((tool) => {
      const [...definitions] = this.#waiting.get(tool)?.definitions ?? [];
      const definition = definitions.at(-1)?.[1];
      if (definition === undefined) return [];
      const before = this.#approved?.get(tool) ?? [];
      const digests = [...before, ...definitions.map(([digest]) => digest)].slice(-MAX_DIGESTS);
      return { scope: this.template, tool, digests, definition };
    });
  }

  states(approved: ReadonlyMap<string, JsonObject>): ToolState[] {
    const names = new Set([...(this.#approved?.keys() ?? []), ...this.#waiting.keys()]);
    return [...names].sort().map((tool) => {
      const before = approved.get(tool);
      const listed = [...(this.#waiting.get(tool)?.definitions.values() ?? [])].at(-1);
      const state = listed === undefined ? 'approved' : before === undefined ? 'new' : 'changed';
      return { tool, state, ...(before && { approved: before }), ...(listed && { listed }) };
    });
  }

  withheld(): WithheldItem[] {
    if (this.#isFirst) return [];
    return [...this.#waiting.keys()].map((tool) => ({
      list: 'tools',
      name: tool,
      reason: this.#reasonFor(tool),
    }));
  }

  /** Nothing is approved yet, so that what is listed now will be. */
  get #isFirst(): boolean {
    return this.#approved?.size === 0;
  }

  #reasonFor(tool: string): string {
    return this.#approved?.has(tool) === true
      ? 'its definition has changed since it was approved'
      : 'it is new and waits for approval';
  }

  /** True for a tool that waits since now. */
  #note(tool: Tool): boolean {
    const digest = this.digestOf(tool);
    const { name } = tool;
    const { definitions } = this.#waiting.get(name) ?? { definitions: new Map<string, JsonObject>() };
    if (this.#approved?.get(name)?.includes(digest) === true || definitions.has(digest)) return false;
    const definition = approvedPart(tool as JsonObject);
    const units = JSON.stringify(definition).length;
    if (this.#units + units > MAX_WAITING_UNITS || definitions.size >= MAX_DIGESTS) return false;
    this.#units += units;
    definitions.set(digest, definition);
    this.#waiting.set(name, { definitions });
    if (this.#isFirst || this.#approved === undefined) return false;
    const fields = { atMs: this.#deps.clock.wall(), template: this.template, tool: name };
    if (this.#approved.has(name)) this.#deps.emit({ type: 'tool.changed', ...fields });
    const reason = this.#reasonFor(name);
    this.#deps.emit({ type: 'tool.withheld', ...fields, list: 'tools', reason, alias: 'tool.omitted' });
    return true;
  }

  #drop(tool: string, digests: readonly string[]): void {
    const { definitions } = this.#waiting.get(tool) ?? {};
    for (const digest of digests) {
      const definition = definitions?.get(digest);
      if (definition === undefined) continue;
      this.#units -= JSON.stringify(definition).length;
      definitions?.delete(digest);
    }
    if (definitions?.size === 0) this.#waiting.delete(tool);
  }
}

// The approved tools of a pinned template, or of a pinned view, and the tools that wait for approval. Source: ADR 238.

import { hash } from 'node:crypto';
import type { GatewayEvent } from '../../domain/events/events.ts';
import { canonicalText, type JsonObject } from '../../domain/json/json.ts';
import { jsonMemory } from '../../domain/memory/held-bytes.ts';
import { eachInGroups } from '../../domain/time/task-groups.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import {
  type Approval,
  approvedPart,
  MAX_DIGESTS,
  type NewApproval,
  splitItemKey,
  WAITING_REASONS,
  withDigests,
} from '../../domain/views/approval.ts';
import type { Waiting } from '../../protocol/aggregate/views/view-problems.ts';
import type { WithheldTool } from '../../transports/open-options.ts';

/** Memory of the definitions of one scope that wait for approval. Those beyond are withheld, and can be approved later. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

export interface ToolState {
  /** The template's own name for the tool; in a view after the id of the template and `/`. */
  readonly tool: string;
  readonly state: 'approved' | 'new' | 'changed';
  /** The newest approved definition; absent for a new tool. */
  readonly approved?: JsonObject;
  /** The newest one that waits for approval; absent for an approved tool. */
  readonly listed?: JsonObject;
  /** All that wait, the newest last; absent for an approved tool. */
  readonly waiting?: Omit<ListedTool, 'tool'>[];
}

/** A definition, with its digest. */
export interface ListedTool {
  /** The template's own name for the tool; in a view after the id of the template and `/`. */
  readonly tool: string;
  readonly digest: string;
  readonly definition: JsonObject;
}

interface WaitingDefinition {
  readonly definition: JsonObject;
  /** Its memory: see jsonMemory. */
  readonly bytes: number;
}

export interface PinnedScopeDeps extends Timing {
  readonly emit: (event: GatewayEvent) => void;
  /** The first list is to be approved. */
  readonly onFirst: (scope: PinnedScope) => void;
}

/** SHA-256 of the part of a definition that is approved, as hexadecimal digits. */
export function digestOf(tool: JsonObject): string {
  return hash('sha256', canonicalText(approvedPart(tool)), 'hex');
}

/** One pinned template or view, which ToolApprovals makes when it is pinned. */
export class PinnedScope {
  readonly id: string;
  readonly #kind: 'template' | 'view';
  readonly #deps: PinnedScopeDeps;
  /** The approved digests by tool; undefined before they were read from the store. */
  #approved: Map<string, readonly string[]> | undefined;
  /** The waiting definitions by tool and digest, the newest last. */
  readonly #waiting = new Map<string, Map<string, WaitingDefinition>>();
  #bytes = 0;
  /** True while more tools are about to be listed. */
  #isGathering = false;

  constructor(id: string, kind: 'template' | 'view', deps: PinnedScopeDeps) {
    this.id = id;
    this.#kind = kind;
    this.#deps = deps;
  }

  has(tool: string, digest: string): boolean {
    if (this.isFirst) return true;
    return this.#approved?.get(tool)?.includes(digest) === true;
  }

  /**
   * Notes the definitions that are not approved, in several turns; true when a tool waits since now. `all`: no tool is missing,
   * so that a first list can be approved.
   */
  async listed(tools: readonly ListedTool[], extent: 'all' | 'some'): Promise<boolean> {
    let isNew = false;
    const note = (tool: ListedTool): void => {
      isNew = this.#note(tool) || isNew;
    };
    await eachInGroups(tools, note, this.#deps.scheduler);
    if (extent === 'all' && this.isFirst && !this.#isGathering && this.#waiting.size > 0)
      this.#deps.onFirst(this);
    return isNew;
  }

  /** Runs `list`, which lists the tools of several instances or templates: none of these lists is the first one by itself. */
  async gather(list: () => Promise<unknown>): Promise<void> {
    this.#isGathering = true;
    try {
      await list();
    } finally {
      this.#isGathering = false;
    }
  }

  /** The definitions that wait, of all tools. */
  waitingDefinitions(): ListedTool[] {
    return [...this.#waiting.keys()].flatMap((tool) =>
      this.#definitionsOf(tool).map((definition) => ({ tool, ...definition })),
    );
  }

  /** Keeps definitions that wait at another node, whose events report them, in several turns. */
  async learn(definitions: readonly ListedTool[]): Promise<void> {
    if (this.#approved === undefined || this.isFirst) return;
    await eachInGroups(definitions, (each) => this.#keep(each), this.#deps.scheduler);
  }

  /** True when something changed. */
  replace(approvals: readonly Approval[]): boolean {
    const before = this.#approved;
    const next = new Map(approvals.map(({ tool, digests }) => [tool, digests]));
    const isSame = ([tool, digests]: readonly [string, readonly string[]]) =>
      before?.get(tool)?.join() === digests.join();
    this.#approved = next;
    for (const [tool, digests] of next) this.#drop(tool, digests);
    return before?.size !== next.size || ![...next].every(isSame);
  }

  add(approvals: readonly Approval[]): void {
    this.#approved ??= new Map();
    for (const { tool, digests } of approvals) {
      this.#approved.set(tool, withDigests(this.#approved.get(tool) ?? [], digests));
      this.#drop(tool, digests);
    }
  }

  /** Forgets the definitions of this tool that wait for an approval. */
  dropWaiting(tool: string): void {
    this.#drop(tool, [...(this.#waiting.get(tool)?.keys() ?? [])]);
  }

  knows(tool: string): boolean {
    return this.#waiting.has(tool) || this.#approved?.has(tool) === true;
  }

  /** The approvals of these tools, or of all that wait. `digests`: of these definitions only. */
  waiting(tools: Iterable<string> = this.#waiting.keys(), digests?: ReadonlySet<string>): NewApproval[] {
    return [...new Set(tools)].flatMap((tool) => {
      const chosen = this.#definitionsOf(tool).filter(({ digest }) => digests?.has(digest) !== false);
      const definition = chosen.at(-1)?.definition;
      if (definition === undefined) return [];
      return { scope: this.id, tool, digests: chosen.map(({ digest }) => digest), definition };
    });
  }

  states(approved: ReadonlyMap<string, JsonObject>): ToolState[] {
    const names = new Set([...(this.#approved?.keys() ?? []), ...this.#waiting.keys()]);
    return [...names].sort().map((tool) => {
      const before = approved.get(tool);
      const waiting = this.#definitionsOf(tool);
      const listed = waiting.at(-1)?.definition;
      const state = listed === undefined ? 'approved' : before === undefined ? 'new' : 'changed';
      return { tool, state, ...(before && { approved: before }), ...(listed && { listed, waiting }) };
    });
  }

  #definitionsOf(tool: string): Omit<ListedTool, 'tool'>[] {
    return [...(this.#waiting.get(tool) ?? [])].map(([digest, { definition }]) => ({ digest, definition }));
  }

  withheld(): WithheldTool[] {
    if (this.isFirst) return [];
    return [...this.#waiting.keys()].map((tool) => ({ tool, reason: this.#reasonFor(tool) }));
  }

  /** The reason why the tool waits. */
  waitingOf(tool: string): Waiting {
    return { reason: this.#reasonFor(tool), hasApproved: this.#approved?.has(tool) === true };
  }

  #reasonFor(tool: string): string {
    return WAITING_REASONS[this.#approved?.has(tool) === true ? 'changed' : 'new'];
  }

  /** The fields that name the tool in an event. */
  eventOf(tool: string) {
    const named =
      this.#kind === 'view' ? { ...splitItemKey(tool), view: this.id } : { template: this.id, tool };
    return { atMs: this.#deps.clock.wall(), ...named };
  }

  /** True when nothing is approved yet, so that the present list will be approved. */
  get isFirst(): boolean {
    return this.#approved?.size === 0;
  }

  /** True for a tool that waits since now. */
  #note({ tool, digest, definition: listed }: ListedTool): boolean {
    if (!this.#keep({ tool, digest, definition: approvedPart(listed) })) return false;
    if (this.isFirst || this.#approved === undefined) return false;
    const fields = this.eventOf(tool);
    if (this.#approved.has(tool)) this.#deps.emit({ type: 'tool.changed', ...fields });
    const reason = this.#reasonFor(tool);
    this.#deps.emit({ type: 'tool.withheld', ...fields, list: 'tools', reason, alias: 'tool.omitted' });
    return true;
  }

  /** True for a definition that waits since now. It has its approved part only. */
  #keep({ tool, digest, definition }: ListedTool): boolean {
    const definitions = this.#waiting.get(tool) ?? new Map<string, WaitingDefinition>();
    if (this.#approved?.get(tool)?.includes(digest) === true || definitions.has(digest)) return false;
    const text = JSON.stringify(definition);
    const bytes = jsonMemory(definition, text.length);
    if (this.#bytes + bytes > MAX_WAITING_BYTES || definitions.size >= MAX_DIGESTS) return false;
    this.#bytes += bytes;
    definitions.set(digest, { definition: JSON.parse(text), bytes });
    this.#waiting.set(tool, definitions);
    return true;
  }

  #drop(tool: string, digests: readonly string[]): void {
    const definitions = this.#waiting.get(tool);
    for (const digest of digests) {
      this.#bytes -= definitions?.get(digest)?.bytes ?? 0;
      definitions?.delete(digest);
    }
    if (definitions?.size === 0) this.#waiting.delete(tool);
  }
}

// The tool definitions of a template that are trusted. By default all are; for a pinned template, and through a pinned
// view, only approved ones are. Source: ADR 238.

import { groupsToMatch } from '../../domain/accounts/globs.ts';
import type { SourcedEvent } from '../../domain/calls/exchange.ts';
import { isJsonObject, type JsonObject, JsonText } from '../../domain/json/json.ts';
import { arrayOf, editedFields } from '../../domain/json/json-fields.ts';
import { memberBytes } from '../../domain/json/json-scanner.ts';
import { itemsInParts, readPage } from '../../domain/lists/list-pages.ts';
import type { Tool } from '../../domain/mcp/mcp.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';

/** The digests that identify a tool definition. */
export interface ToolDigests {
  /** The digest of the definition as its server lists it. */
  readonly own: string;
  /** The digest of the definition as the lists of aggregates show it. */
  readonly shown: string;
}

/** The digests of listed tools, by the definition as its server lists it. */
export type ListedDigests = ReadonlyMap<Tool, ToolDigests>;

/**
 * Decides which tool definitions of one template are used. Lists may have thousands of tools: work on a whole list is
 * spread over several turns of the event loop.
 */
export interface ToolTrust {
  /** True when definitions have to be approved, for the template or for this view. */
  isRequiredFor(view: string | undefined): boolean;
  /** The digests of the definitions, in the same order. */
  digestsOf(tools: readonly Tool[]): Promise<ListedDigests>;
  /** True when the definition is approved for the template, and for this view. */
  isApproved(tool: string, digests: ToolDigests, view?: string): boolean;
  /** Resolves with true when the template and all its views use each of the definitions. */
  areUsedEverywhere(digests: ListedDigests): Promise<boolean>;
  /** Records that an instance has listed these tools. `all`: the instance has no others. */
  listed(digests: ListedDigests, extent: 'all' | 'some'): Promise<void>;
}

/** The trust of a template; undefined when every definition is trusted. Called for each call of a tool. */
export type TrustOf = (template: string) => ToolTrust | undefined;

/**
 * Removes tools that are not trusted from the tool list in an answer, and records definitions that wait for approval. `trusted`:
 * the answer without them; the same object when all are trusted. `definitions`: those of the list by name, if one of them waits
 * for approval of the template or of a view.
 */
export async function withTrustedTools(
  sourced: SourcedEvent,
  trust: ToolTrust,
  scheduler: TaskScheduler,
): Promise<{ readonly trusted: SourcedEvent; readonly definitions?: ReadonlyMap<string, ToolDigests> }> {
  const { event } = sourced;
  if (event.kind !== 'result') return { trusted: sourced };
  const listed = toolsIn(await readPage('tools', event.result, scheduler));
  const digests = await trust.digestsOf(listed.filter(isNamed));
  if (await trust.areUsedEverywhere(digests)) return { trusted: sourced };
  await trust.listed(digests, 'some');
  const definitions = new Map<string, ToolDigests>();
  const withheld = new Set<unknown>();
  await scheduler.each(
    groupsToMatch(digests, ([{ name }]) => name),
    (group) => {
      for (const [tool, own] of group) {
        definitions.set(tool.name, own);
        if (!trust.isApproved(tool.name, own)) withheld.add(tool);
      }
    },
  );
  if (withheld.size === 0) return { trusted: sourced, definitions };
  const result = await listWithout(withheld, listed, event.result, scheduler);
  return { trusted: { ...sourced, event: { ...event, result } }, definitions };
}

/** The result without these tools of its list, which was read as `listed`. Everything else keeps its bytes. */
async function listWithout(
  withheld: ReadonlySet<unknown>,
  listed: readonly unknown[],
  { bytes }: JsonText,
  scheduler: TaskScheduler,
): Promise<JsonText> {
  const groups: Buffer[] = [];
  let place = 0;
  await scheduler.each(itemsInParts(memberBytes(bytes, 'tools') ?? NO_TOOLS), (part) => {
    const from = place;
    place += part.length;
    const kept = part.filter((_, index) => !withheld.has(listed[from + index]));
    if (kept.length > 0) groups.push(arrayOf(kept).subarray(1, -1));
  });
  const tools = arrayOf(groups);
  return JsonText.ofBytes(editedFields(bytes, (key) => (key === 'tools' ? tools : undefined)));
}

const NO_TOOLS = Buffer.from('[]');

function toolsIn(result: unknown): readonly unknown[] {
  return isJsonObject(result) && Array.isArray(result.tools) ? result.tools : [];
}

function isNamed(tool: unknown): tool is JsonObject & Tool {
  return isJsonObject(tool) && typeof tool.name === 'string';
}

// The tool definitions of a template that are trusted. By default all are; for a pinned template, and through a pinned
// view, only approved ones are. Source: ADR 238, ADR 242.

import { groupsToMatch } from '../../domain/accounts/globs.ts';
import type { SourcedEvent } from '../../domain/calls/exchange.ts';
import { parsedResult } from '../../domain/calls/parsed-result.ts';
import { isJsonObject, type JsonObject, JsonText } from '../../domain/json/json.ts';
import { arrayOf, editedFields } from '../../domain/json/json-fields.ts';
import { memberBytes, memberText } from '../../domain/json/json-scanner.ts';
import { itemsInParts, readPage } from '../../domain/lists/list-pages.ts';
import type { Tool } from '../../domain/mcp/mcp.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { ToolHints } from '../../domain/views/view.ts';

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
  /** Records that an instance has listed these tools. `isComplete`: the instance has no others. */
  listed(digests: ListedDigests, isComplete: boolean): Promise<void>;
}

/** The trust of a template; undefined when every definition is trusted. Called for each call of a tool. */
export type TrustOf = (template: string) => ToolTrust | undefined;

interface TrustedList {
  /** The answer without tools whose definition is not trusted; the same object when all are. */
  readonly trusted: SourcedEvent;
  /**
   * The definitions of the list by name, if one of them waits for approval of the template or of a view; undefined
   * otherwise.
   */
  readonly waiting?: ReadonlyMap<string, ToolDigests>;
}

/** Removes tools that are not trusted from the tool list in an answer, and records definitions that wait for approval. */
export async function withTrustedTools(
  sourced: SourcedEvent,
  trust: ToolTrust,
  scheduler: TaskScheduler,
): Promise<TrustedList> {
  const { event } = sourced;
  if (event.kind !== 'result') return { trusted: sourced };
  const listed = toolsIn(await readPage('tools', event.result, scheduler));
  const digests = await trust.digestsOf(listed.filter(isNamed));
  if (await trust.areUsedEverywhere(digests)) return { trusted: sourced };
  await trust.listed(digests, false);
  const waiting = new Map<string, ToolDigests>();
  const withheld = new Set<unknown>();
  await scheduler.each(
    groupsToMatch(digests, ([{ name }]) => name),
    (group) => {
      for (const [tool, own] of group) {
        waiting.set(tool.name, own);
        if (!trust.isApproved(tool.name, own)) withheld.add(tool);
      }
    },
  );
  if (withheld.size === 0) return { trusted: sourced, waiting };
  const result = await listWithout(withheld, listed, event.result, scheduler);
  return { trusted: { ...sourced, event: { ...event, result } }, waiting };
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

/** Adds the annotations that the template sets to the tool list in an answer. */
export async function withHints(
  sourced: SourcedEvent,
  hints: Hints,
  scheduler: TaskScheduler,
): Promise<SourcedEvent> {
  const { event } = sourced;
  const listed = event.kind === 'result' ? memberBytes(event.result.bytes, 'tools') : undefined;
  if (event.kind !== 'result' || listed === undefined) return sourced;
  const pieces: Buffer[] = [];
  let keptFrom = 0;
  await scheduler.each(itemsInParts(listed), (part) => {
    for (const tool of part) {
      const name = memberText(tool, 'name');
      if (name === undefined || !Object.hasOwn(hints, name)) continue;
      const start = tool.byteOffset - listed.byteOffset;
      pieces.push(listed.subarray(keptFrom, start), withWrittenHints(tool, hints[name]));
      keptFrom = start + tool.length;
    }
  });
  if (pieces.length === 0) return sourced;
  const tools = Buffer.concat([...pieces, listed.subarray(keptFrom)]);
  const shown = editedFields(event.result.bytes, (key) => (key === 'tools' ? tools : undefined));
  return { ...sourced, event: { ...event, result: JsonText.ofBytes(shown) } };
}

/**
 * The tool with the given hints. Only its annotations are parsed, since all tools of a large list may have
 * hints.
 */
function withWrittenHints(tool: Buffer, hints: ToolHints | undefined): Buffer {
  const written = memberBytes(tool, 'annotations');
  const own = written === undefined ? {} : parsedResult(JsonText.ofBytes(written), 'exactValue');
  const { bytes } = JsonText.ofValue({ ...Object(own), ...hints });
  if (written !== undefined) return editedFields(tool, (key) => (key === 'annotations' ? bytes : undefined));
  return Buffer.concat([tool.subarray(0, -1), ANNOTATIONS, bytes, tool.subarray(-1)]);
}

/** The member that is inserted behind the others of a tool; a comma may precede it, because every tool has a name. */
const ANNOTATIONS = Buffer.from(',"annotations":');

type Hints = Readonly<Record<string, ToolHints>>;

/** The tool with the hints that the template sets for it. */
export function withOwnHints<T extends Pick<Tool, 'name' | 'annotations'>>(tool: T, hints: Hints): T {
  if (!Object.hasOwn(hints, tool.name)) return tool;
  return { ...tool, annotations: { ...Object(tool.annotations), ...hints[tool.name] } };
}

function toolsIn(result: unknown): readonly unknown[] {
  return isJsonObject(result) && Array.isArray(result.tools) ? result.tools : [];
}

function isNamed(tool: unknown): tool is JsonObject & Tool {
  return isJsonObject(tool) && typeof tool.name === 'string';
}

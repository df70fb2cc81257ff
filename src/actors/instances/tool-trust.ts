// Which definitions of the tools of a template are used. By default all are; of a pinned template, and through a
// pinned view, only the approved ones. Source: ADR 238, ADR 242.

import type { Answer } from '../../domain/calls/exchange.ts';
import { parsedResult } from '../../domain/calls/parsed-result.ts';
import { isJsonObject, type JsonObject, JsonText } from '../../domain/json/json.ts';
import { editedFields, withItems } from '../../domain/json/json-fields.ts';
import { memberBytes, memberText } from '../../domain/json/json-scanner.ts';
import { partsOf, readPage } from '../../domain/mcp/list-pages.ts';
import type { Tool } from '../../domain/mcp/mcp.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { ToolHints } from '../../domain/views/view.ts';

/** What identifies a definition. */
export interface ToolDigests {
  /** As its server lists it. */
  readonly own: string;
  /** As lists of several templates show it. */
  readonly shown: string;
}

/** By definition as its server lists it. */
export type ListedDigests = ReadonlyMap<Tool, ToolDigests>;

/**
 * Which definitions of tools are used, for one template. Lists may have thousands of tools: what concerns all of a
 * list is done in several turns of the event loop.
 */
export interface ToolTrust {
  /** True when definitions have to be approved, for the template or for this view. */
  isFor(view: string | undefined): boolean;
  /** The digests of the definitions, in their order. */
  digestsOf(tools: readonly Tool[]): Promise<ListedDigests>;
  /** True when the definition is approved for the template, and for this view. */
  has(tool: string, digests: ToolDigests, view?: string): boolean;
  /** True when no view withholds one of the definitions either. */
  areUsedEverywhere(digests: ListedDigests): Promise<boolean>;
  /** An instance has listed these tools; `isComplete`: all that it has. */
  listed(digests: ListedDigests, isComplete: boolean): Promise<void>;
}

/** Undefined for a template of which every definition is used. Called for each call of a tool. */
export type TrustOf = (template: string) => ToolTrust | undefined;

interface TrustedList {
  /** Without the tools whose definition is not trusted; the same answer when all are. */
  readonly answer: Answer;
  /** By name, the definitions of the list if one of them waits for approval, of the template or of a view; that is noted. */
  readonly waiting?: ReadonlyMap<string, ToolDigests>;
}

/** The list of tools in an answer without those that are not trusted. */
export async function withTrustedTools(
  answer: Answer,
  trust: ToolTrust,
  scheduler: Pick<TaskScheduler, 'each'>,
): Promise<TrustedList> {
  const { event } = answer;
  if (event.kind !== 'result') return { answer };
  const listed = toolsIn(await readPage('tools', event.result, scheduler));
  const named = listed.filter(isNamed);
  const digests = await trust.digestsOf(named);
  if (await trust.areUsedEverywhere(digests)) return { answer };
  await trust.listed(digests, false);
  const waiting = new Map([...digests].map(([{ name }, own]) => [name, own]));
  const isTrusted = listed.map((tool) => {
    const own = isNamed(tool) ? digests.get(tool) : undefined;
    return !isNamed(tool) || own === undefined || trust.has(tool.name, own);
  });
  if (isTrusted.every(Boolean)) return { answer, waiting };
  const shown = withItems(event.result.bytes, 'tools', (item, index) =>
    isTrusted[index] ? item : undefined,
  );
  return { answer: { ...answer, event: { ...event, result: JsonText.ofBytes(shown) } }, waiting };
}

/** The list with the annotations that the template sets. */
export async function withHints(
  answer: Answer,
  hints: Hints,
  scheduler: Pick<TaskScheduler, 'each'>,
): Promise<Answer> {
  const { event } = answer;
  const listed = event.kind === 'result' ? memberBytes(event.result.bytes, 'tools') : undefined;
  if (event.kind !== 'result' || listed === undefined) return answer;
  const pieces: Buffer[] = [];
  let keptFrom = 0;
  await scheduler.each(partsOf(listed), (part) => {
    for (const tool of part) {
      const name = memberText(tool, 'name');
      if (name === undefined || !Object.hasOwn(hints, name)) continue;
      const start = tool.byteOffset - listed.byteOffset;
      pieces.push(listed.subarray(keptFrom, start), withWrittenHints(tool, hints[name]));
      keptFrom = start + tool.length;
    }
  });
  if (pieces.length === 0) return answer;
  const tools = Buffer.concat([...pieces, listed.subarray(keptFrom)]);
  const shown = editedFields(event.result.bytes, (key) => (key === 'tools' ? tools : undefined));
  return { ...answer, event: { ...event, result: JsonText.ofBytes(shown) } };
}

/** Only the annotations are parsed: all tools of a large list may have hints. */
function withWrittenHints(tool: Buffer, hints: ToolHints | undefined): Buffer {
  const written = memberBytes(tool, 'annotations');
  const own = written === undefined ? {} : parsedResult(JsonText.ofBytes(written), 'exactValue');
  const { bytes } = JsonText.ofValue({ ...Object(own), ...hints });
  if (written !== undefined) return editedFields(tool, (key) => (key === 'annotations' ? bytes : undefined));
  return Buffer.concat([tool.subarray(0, -1), ANNOTATIONS, bytes, tool.subarray(-1)]);
}

/** After the name, which the tool has. */
const ANNOTATIONS = Buffer.from(',"annotations":');

type Hints = Readonly<Record<string, ToolHints>>;

/** The tool with the hints that are set for it. */
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

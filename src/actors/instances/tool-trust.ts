// Which definitions of the tools of a template are used. By default all are; of a pinned template, and through a
// pinned view, only the approved ones. Source: ADR 238, ADR 242.

import type { Answer } from '../../domain/calls/exchange.ts';
import { MAX_PAGE, parsedResult } from '../../domain/calls/parsed-result.ts';
import { isJsonObject, type JsonObject, JsonText } from '../../domain/json/json.ts';
import type { Tool } from '../../domain/mcp/mcp.ts';
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
export async function withTrustedTools(answer: Answer, trust: ToolTrust): Promise<TrustedList> {
  const { event } = answer;
  if (event.kind !== 'result') return { answer };
  const listed = toolsIn(parsedResult(event.result, 'value', MAX_PAGE));
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
  const result = parsedResult(event.result, 'exactValue', MAX_PAGE);
  const tools = toolsIn(result).filter((_, index) => isTrusted[index]);
  const shown = JsonText.ofValue({ ...Object(result), tools });
  return { answer: { ...answer, event: { ...event, result: shown } }, waiting };
}

/** The list with the annotations that the template sets. */
export function withHints(answer: Answer, hints: Hints): Answer {
  const { event } = answer;
  if (event.kind !== 'result') return answer;
  const result = parsedResult(event.result, 'exactValue', MAX_PAGE);
  const tools = toolsIn(result).map((tool) => (isNamed(tool) ? withOwnHints(tool, hints) : tool));
  return { ...answer, event: { ...event, result: JsonText.ofValue({ ...Object(result), tools }) } };
}

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

// Which definitions of the tools of a template are used. By default all are; of a pinned template only the approved ones. Source: ADR 238.

import { type Answer, parsedResult } from '../../domain/exchange.ts';
import { isJsonObject, type JsonObject, JsonText } from '../../domain/json.ts';
import type { Tool } from '../../domain/mcp.ts';
import type { ToolHints } from '../../domain/view.ts';

export interface ToolTrust {
  digestOf(tool: Tool): string;
  /** True when a definition with this digest is approved. */
  has(tool: string, digest: string): boolean;
  /** An instance has listed these tools, complete. */
  listed(tools: readonly Tool[]): void;
}

/** Undefined for a template of which every definition is used. Called for each call of a tool. */
export type TrustOf = (template: string) => ToolTrust | undefined;

/** The list without the tools whose definition is not trusted, which are noted; the same answer when all are. */
export function withTrustedTools(answer: Answer, trust: ToolTrust): Answer {
  const { event } = answer;
  if (event.kind !== 'result') return answer;
  const listed = toolsIn(parsedResult(event.result));
  const isTrusted = listed.map((tool) => !isNamed(tool) || trust.has(tool.name, trust.digestOf(tool)));
  if (isTrusted.every(Boolean)) return answer;
  trust.listed(listed.filter(isNamed));
  const result = parsedResult(event.result, 'exactValue');
  const tools = toolsIn(result).filter((_, index) => isTrusted[index]);
  return { ...answer, event: { ...event, result: JsonText.ofValue({ ...Object(result), tools }) } };
}

/** The list with the annotations that the template sets. */
export function withHints(answer: Answer, hints: Readonly<Record<string, ToolHints>>): Answer {
  const { event } = answer;
  if (event.kind !== 'result') return answer;
  const result = parsedResult(event.result, 'exactValue');
  const tools = toolsIn(result).map((tool) => {
    if (!isNamed(tool) || !Object.hasOwn(hints, tool.name)) return tool;
    return { ...tool, annotations: { ...Object(tool.annotations), ...hints[tool.name] } };
  });
  return { ...answer, event: { ...event, result: JsonText.ofValue({ ...Object(result), tools }) } };
}

function toolsIn(result: unknown): readonly unknown[] {
  return isJsonObject(result) && Array.isArray(result.tools) ? result.tools : [];
}

function isNamed(tool: unknown): tool is JsonObject & Tool {
  return isJsonObject(tool) && typeof tool.name === 'string';
}

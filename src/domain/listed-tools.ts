// The tools in a list of a template that a caller may call. Source: ADR 230.

import { map, type Observable } from 'rxjs';
import { type Answer, type ExchangeRequest, parsedResult } from './exchange.ts';
import { isJsonObject, type JsonObject, JsonText } from './json.ts';
import { editedFields } from './json-fields.ts';
import type { ToolRights } from './rights.ts';

/**
 * The answers of a request, with `tools/list` without the tools that the caller may not call. To be used after a cache, which callers
 * with other rights share.
 */
export function listedAnswers(
  template: string,
  { method, tools }: ExchangeRequest,
  answers$: Observable<Answer>,
): Observable<Answer> {
  if (tools === undefined || method !== 'tools/list') return answers$;
  return answers$.pipe(map((answer) => listedAnswer(template, tools, answer)));
}

function listedAnswer(template: string, tools: ToolRights, answer: Answer): Answer {
  const { event } = answer;
  if (event.kind !== 'result') return answer;
  const value = parsedResult(event.result, 'exactValue');
  const listed = isJsonObject(value) && Array.isArray(value.tools) ? value.tools : [];
  const allowed = JsonText.ofValue(
    listed.filter((item) => isJsonObject(item) && allows(tools, template, item)),
  );
  // Everything else keeps its bytes.
  const bytes = editedFields(event.result.bytes, (key) => (key === 'tools' ? allowed.bytes : undefined));
  return { ...answer, event: { kind: 'result', result: JsonText.ofBytes(bytes) } };
}

/** The items of a list that were read. */
export function allowedTools<T extends JsonObject>(
  template: string,
  tools: ToolRights | undefined,
  items: readonly T[],
): readonly T[] {
  return tools === undefined ? items : items.filter((item) => allows(tools, template, item));
}

function allows(tools: ToolRights, template: string, { name }: JsonObject): boolean {
  return typeof name === 'string' && tools.allow(template, name);
}

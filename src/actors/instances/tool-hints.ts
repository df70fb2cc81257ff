// The annotations of tools that a template sets: in the lists of its instances, and for what the gateway makes of a tool.

import type { SourcedEvent } from '../../domain/calls/exchange.ts';
import { parsedResult } from '../../domain/calls/parsed-result.ts';
import { JsonText } from '../../domain/json/json.ts';
import { editedFields } from '../../domain/json/json-fields.ts';
import { memberBytes, memberText } from '../../domain/json/json-scanner.ts';
import { itemsInParts } from '../../domain/lists/list-pages.ts';
import type { Tool } from '../../domain/mcp/mcp.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import type { ToolHints } from '../../domain/views/view.ts';

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

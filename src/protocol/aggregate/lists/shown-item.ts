// An item of a template as clients of an aggregate see it.

import { isJsonObject, type JsonObject } from '../../../domain/json/json.ts';
import { mayBeMapped } from '../aggregate-names.ts';
import { objectSchemaOf } from './acceptable-schemas.ts';

interface Shown {
  /** The name of the item as it is listed. */
  readonly name: string;
  /** Name at the server. */
  readonly own: string;
  /** True for a client of the legacy era. */
  readonly isLegacy: boolean;
}

/** `item` is one that `checkedItem` accepts. */
export function shownItem(
  list: 'tools' | 'prompts',
  item: JsonObject,
  { name, own, isLegacy }: Shown,
): JsonObject {
  const isMade = name !== own && mayBeMapped(name);
  const shown: JsonObject = { ...item, ...(isMade ? originalOf(item, own) : withoutOriginal(item)), name };
  return isLegacy && list === 'tools' ? legacyTool(shown) : shown;
}

/** The tool as clients of the legacy era accept it. The same object where it needs no change. */
function legacyTool(tool: JsonObject): JsonObject {
  if (!isJsonObject(tool.outputSchema)) return tool;
  const outputSchema = objectSchemaOf(tool.outputSchema);
  const { outputSchema: _, ...others } = tool;
  return outputSchema === undefined ? others : { ...tool, outputSchema };
}

/** The name of an item whose listed name does not contain it: for programs, and for people where it has no title. */
function originalOf(item: JsonObject, name: string): JsonObject {
  const { title, annotations, _meta } = item;
  const hasTitle = title !== undefined || (isJsonObject(annotations) && annotations.title !== undefined);
  const meta = { ...(isJsonObject(_meta) && _meta), [ORIGINAL_NAME]: name };
  return hasTitle ? { _meta: meta } : { title: name, _meta: meta };
}

/** The `_meta` of an item that is shown under its own name, without the key of the gateway; nothing where it has no such key. */
function withoutOriginal({ _meta }: JsonObject): JsonObject {
  if (!isJsonObject(_meta) || _meta[ORIGINAL_NAME] === undefined) return {};
  const { [ORIGINAL_NAME]: _, ...others } = _meta;
  return { _meta: others };
}

/** Key of `_meta`. */
const ORIGINAL_NAME = 'stagedoor/name';

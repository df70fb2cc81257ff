// How items of templates are shown to the clients of several templates as one server.

import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import { objectSchemaOf } from './aggregate-schemas.ts';

/** The tool as clients of the legacy era accept it. The same object where it needs no change. */
export function forLegacy(tool: JsonObject): JsonObject {
  if (!isJsonObject(tool.outputSchema)) return tool;
  const outputSchema = objectSchemaOf(tool.outputSchema);
  const { outputSchema: _, ...others } = tool;
  return outputSchema === undefined ? others : { ...tool, outputSchema };
}

/** The name of an item whose listed name does not contain it: for programs, and for people where it has no title. */
export function originalOf(item: JsonObject, name: string): JsonObject {
  const { title, annotations, _meta } = item;
  const hasTitle = title !== undefined || (isJsonObject(annotations) && annotations.title !== undefined);
  const meta = { ...(isJsonObject(_meta) && _meta), [ORIGINAL_NAME]: name };
  return hasTitle ? { _meta: meta } : { title: name, _meta: meta };
}

/** Key of `_meta`. */
const ORIGINAL_NAME = 'stagedoor/name';

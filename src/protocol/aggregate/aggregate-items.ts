// What one template lists, as it is shown in the list of all: tools and prompts by their joined names, and everything with
// what clients insist on, since one item that they refuse would cost them the whole list.

import { isJsonObject, type JsonObject } from '../../domain/json.ts';
import type { ListField } from '../../domain/mcp.ts';
import { isTooLong } from '../client-bounds.ts';
import { aggregateName, mayBeCut, type OwnName, splitName } from './aggregate-names.ts';

/** One item of one template. */
export interface AggregateItem {
  readonly template: string;
  /** What tells it from others in its list: joined name, URI, or URI template. */
  readonly key: string;
  readonly shown: JsonObject;
  /** Whose it is, where the aggregate name does not say so by itself. */
  readonly own: OwnName | undefined;
}

/** Makes items, each once: what comes from memory comes again and again. */
export class AggregateItems {
  readonly #made = new WeakMap<JsonObject, AggregateItem>();

  /** Undefined for an item that nobody could ask for. */
  of(list: ListField, template: string, item: JsonObject): AggregateItem | undefined {
    const known = this.#made.get(item);
    if (known?.template === template) return known;
    const made =
      list === 'tools' || list === 'prompts' ? named(list, template, item) : located(list, template, item);
    if (made !== undefined) this.#made.set(item, made);
    return made;
  }
}

function named(list: 'tools' | 'prompts', template: string, item: JsonObject): AggregateItem | undefined {
  const { name } = item;
  if (typeof name !== 'string' || name === '' || isTooLong(name)) return undefined;
  const own = { template, name };
  const key = aggregateName(own);
  const isPlain = splitName(key)?.name === name && !mayBeCut(key);
  const shown = { ...item, name: key };
  return {
    template,
    key,
    shown: list === 'tools' ? { ...shown, inputSchema: schemaOf(item) } : shown,
    own: isPlain ? undefined : own,
  };
}

function located(
  list: 'resources' | 'resourceTemplates',
  template: string,
  item: JsonObject,
): AggregateItem | undefined {
  const key = list === 'resources' ? item.uri : item.uriTemplate;
  if (typeof key !== 'string' || key === '' || isTooLong(key)) return undefined;
  const shown = typeof item.name === 'string' ? item : { ...item, name: key };
  return { template, key, shown, own: undefined };
}

/** Source: MCP 2025-11-25 schema, Tool: an object schema, which may say nothing else. */
function schemaOf({ inputSchema }: JsonObject): JsonObject {
  if (!isJsonObject(inputSchema)) return { type: 'object' };
  return inputSchema.type === 'object' ? inputSchema : { ...inputSchema, type: 'object' };
}

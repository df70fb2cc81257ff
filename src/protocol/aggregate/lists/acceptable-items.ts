// Makes the items of the lists of an aggregate acceptable to clients, which reject a whole list for one bad item. An item that
// needs no repair stays the same object. The checks are those of the official SDKs. Source: ADR 116.

import { isDeeper, isJsonObject, type JsonObject, JsonText } from '../../../domain/json/json.ts';
import { LIMITS } from '../../../domain/limits.ts';
import type { ItemCheck } from '../../../domain/lists/list-reader.ts';
import type { ListField, WithheldItem } from '../../../domain/mcp/mcp.ts';
import { cutText } from '../../../domain/text.ts';
import { inGroups } from '../../../domain/time/task-groups.ts';
import type { TaskScheduler } from '../../../domain/time/task-scheduler.ts';
import { isTooLong, MAX_REFERENCE_BYTES } from '../../client-bounds.ts';
import { inputSchemaOf, outputSchemaOf } from './acceptable-schemas.ts';
import { refersNowhere } from './compilable-schema.ts';

/** The field that names an item. */
export const KEY_FIELDS: Readonly<Record<ListField, 'name' | 'uri' | 'uriTemplate'>> = {
  tools: 'name',
  prompts: 'name',
  resources: 'uri',
  resourceTemplates: 'uriTemplate',
};

/** Clients put the definitions of all tools into each request to a model. */
const MAX_TOOL_BYTES = 128 * 1024;

/** The reason why an item is withheld: a fault of the table of the doctor, and a clause without values of the item. */
interface RefusedItem {
  readonly fault: 'no-name' | 'large-tool' | 'dangling-ref';
  readonly reason: string;
}

/**
 * An item that clients accept and can name, or why it is withheld. Leaves out optional fields that are null or have a wrong
 * type, and repairs schemas and missing names of resources.
 */
export function checkedItem(list: ListField, listed: unknown): { readonly item: JsonObject } | RefusedItem {
  if (!isJsonObject(listed)) return unnamed('it is not an object');
  const field = KEY_FIELDS[list];
  const name = listed[field];
  if (typeof name !== 'string') return unnamed(`its ${field} is missing, or is not text`);
  if (name === '') return unnamed(`its ${field} is empty`);
  if (isTooLong(name)) return unnamed(`its ${field} is longer than ${MAX_REFERENCE_BYTES} bytes`);
  if (!name.isWellFormed()) return unnamed(`its ${field} is not valid Unicode`);
  const item = repairFields(listed, FIELDS[list]);
  if (list === 'tools') {
    const text = JSON.stringify(item);
    if (Buffer.byteLength(text) > MAX_TOOL_BYTES)
      return { fault: 'large-tool', reason: 'its definition is larger than 128 KiB' };
    const inputSchema = inputSchemaOf(item.inputSchema);
    if (text.includes('"$ref"') && refersNowhere(inputSchema))
      return { fault: 'dangling-ref', reason: 'its input schema refers to a part that it does not have' };
    return { item: inputSchema === item.inputSchema ? item : { ...item, inputSchema } };
  }
  return { item: typeof item.name === 'string' ? item : { ...item, name } };
}

function unnamed(reason: string): RefusedItem {
  return { fault: 'no-name', reason };
}

/** Withheld items of one list that are reported, and UTF-16 units of their names. */
const MAX_WITHHELD = 100;
const WITHHELD_NAME_UNITS = 256;
/** Items that are checked in one task of the scheduler: 5,000 in one turn would be 80 ms. */
const CHECKED_TOGETHER = 20;
/** The refusal of an item that is nested too deep to be serialized again. */
const TOO_DEEP = { reason: `it is nested deeper than ${LIMITS.nestingDepth} levels` };

/** Keeps the items of one list that clients accept, as they get them, and of each name the first one. */
export function itemCheck(list: ListField, scheduler: TaskScheduler): ItemCheck {
  const withheld: WithheldItem[] = [];
  const withhold = (name: string, reason: string) => {
    if (withheld.length >= MAX_WITHHELD) return;
    withheld.push({ list, name: cutText(name.toWellFormed(), WITHHELD_NAME_UNITS), reason });
  };
  const field = KEY_FIELDS[list];
  return {
    withheld,
    page: async (found) => {
      const items: JsonObject[] = [];
      await scheduler.each(inGroups([...found.entries()], CHECKED_TOGETHER), (group) => {
        for (const [index, listed] of group) {
          const checked = isDeeper(listed, LIMITS.nestingDepth) ? TOO_DEEP : checkedItem(list, listed);
          const name = isJsonObject(listed) ? listed[field] : undefined;
          const shown = typeof name === 'string' && name !== '' ? name : `${list}[${index}]`;
          if ('item' in checked) items.push(checked.item);
          else withhold(shown, checked.reason);
        }
      });
      return items;
    },
    all: (items) => {
      const names = new Set<unknown>();
      return items.filter((item) => {
        const name = item[field];
        const isFirst = names.size < names.add(name).size;
        if (!isFirst) withhold(String(name), 'an earlier item of the list has its name');
        return isFirst;
      });
    },
  };
}

type Repair = (value: unknown) => unknown;
type Repairs = Readonly<Record<string, Repair>>;

/** The object with these fields repaired, all of which are optional; the same object when they need no repair. */
function repairFields(item: JsonObject, fields: Repairs): JsonObject {
  let repaired: Record<string, unknown> | undefined;
  for (const name of Object.keys(fields)) {
    const value = item[name];
    if (value === undefined) continue;
    const acceptable = fields[name]?.(value);
    if (acceptable === value) continue;
    repaired ??= { ...item };
    if (acceptable === undefined) delete repaired[name];
    else repaired[name] = acceptable;
  }
  return (repaired as JsonObject | undefined) ?? item;
}

const text: Repair = (value) => (typeof value === 'string' ? value : undefined);
const flag: Repair = (value) => (typeof value === 'boolean' ? value : undefined);
const object: Repair = (value) => (isJsonObject(value) ? value : undefined);
const date: Repair = (value) => (typeof value === 'string' && isDateTime(value) ? value : undefined);

function oneOf(...texts: readonly string[]): Repair {
  return (value) => (typeof value === 'string' && texts.includes(value) ? value : undefined);
}

/** A number that JavaScript would change is kept as text. */
function numberIn(least: number, most: number): Repair {
  return (value) => {
    const number = value instanceof JsonText ? Number(value.text) : value;
    return typeof number === 'number' && number >= least && number <= most ? value : undefined;
  };
}

/** An object with these fields, and others; one without a usable `required` field is left out. */
function fieldsOf(optional: Repairs, required?: string): Repair {
  return (value) => {
    if (!isJsonObject(value)) return undefined;
    return required !== undefined && text(value[required]) === undefined
      ? undefined
      : repairFields(value, optional);
  };
}

/** Elements that are not acceptable are left out. */
function listOf(repair: Repair): Repair {
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    const repaired = value.map(repair);
    if (repaired.every((element, index) => element === value[index])) return value;
    return repaired.filter((element) => element !== undefined);
  };
}

/** Source: RFC 3339 section 5.6, with the offset that clients require. */
function isDateTime(value: string): boolean {
  const [, day = ''] = DATE_TIME.exec(value) ?? [];
  return day !== '' && new Date(day).toJSON()?.startsWith(day) === true; // not 30 February
}

const DATE_TIME =
  /^(\d{4}-\d\d-\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

const icons = listOf(fieldsOf({ mimeType: text, sizes: listOf(text), theme: oneOf('light', 'dark') }, 'src'));
const EVERY_ITEM: Repairs = { title: text, description: text, icons, _meta: object };
const EVERY_RESOURCE: Repairs = {
  ...EVERY_ITEM,
  mimeType: text,
  annotations: fieldsOf({
    audience: listOf(oneOf('user', 'assistant')),
    priority: numberIn(0, 1),
    lastModified: date,
  }),
};

/** TABLE of the optional fields that clients check. Source: the schemas of the official SDKs 1.32 and 2.4. */
const FIELDS: Readonly<Record<ListField, Repairs>> = {
  tools: {
    ...EVERY_ITEM,
    outputSchema: outputSchemaOf,
    annotations: fieldsOf({
      title: text,
      readOnlyHint: flag,
      destructiveHint: flag,
      idempotentHint: flag,
      openWorldHint: flag,
    }),
    execution: fieldsOf({ taskSupport: oneOf('required', 'optional', 'forbidden') }),
  },
  prompts: { ...EVERY_ITEM, arguments: listOf(fieldsOf({ description: text, required: flag }, 'name')) },
  resources: { ...EVERY_RESOURCE, size: numberIn(-Number.MAX_VALUE, Number.MAX_VALUE) },
  resourceTemplates: EVERY_RESOURCE,
};

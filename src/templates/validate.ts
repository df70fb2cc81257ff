// Checks the text of a template.json against schemas/template.schema.json, with the reference validator of draft-07, and
// reports the place of each violation. The gateway reads definitions with definition.ts, which is lighter and reports less.

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { ErrorObject } from 'ajv';
import { isJsonObject, type JsonObject } from '../domain/json.ts';
import { parseTemplate, readTemplate, TemplateError } from './definition.ts';
import { type Remark, tolerated } from './tolerant.ts';

/** The published schema; templates name it as `$schema`. */
export const TEMPLATE_SCHEMA = fileURLToPath(new URL('../../schemas/template.schema.json', import.meta.url));

export interface Validation {
  readonly violations: readonly Remark[];
  /** Properties that have no effect. */
  readonly warnings: readonly Remark[];
  /** Values that were converted from the form of another platform; only with `isTolerant`. */
  readonly readings: readonly Remark[];
}

export interface ValidationOptions {
  /** Whether the forms of other platforms are converted, as the gateway does. Default false. */
  readonly isTolerant?: boolean;
  readonly folder?: string;
}

/** Throws TemplateError for a text that is not JSON. */
export async function validateTemplate(
  text: string,
  { isTolerant = false, folder }: ValidationOptions = {},
): Promise<Validation> {
  const written = parseTemplate(text);
  const { value, readings } = isTolerant ? tolerated(written, folder) : { value: written, readings: [] };
  const [{ Ajv }, schema, lineOf] = await Promise.all([import('ajv'), readSchema(), linesOf(text)]);
  const located = (remarks: readonly Remark[]): Remark[] =>
    remarks.map(({ pointer, message }) => {
      const line = lineOf(pointer);
      return { pointer, ...(line === undefined ? {} : { line }), message };
    });
  const ajv = new Ajv({ allErrors: true, strict: false, logger: false });
  const check = ajv.compile(schema);
  const isWellFormed = check(value);
  const settings = isWellFormed && isJsonObject(value) ? value.config_schema : undefined;
  if (isJsonObject(settings)) ajv.validateSchema(settings);
  const violations = [
    ...distinct((check.errors ?? []).map((error) => remarkOn(error))),
    ...distinct((ajv.errors ?? []).map((error) => remarkOn(error, '/config_schema'))),
    ...(isWellFormed ? beyondSchema(text, folder) : []),
  ];
  const known = Object.keys(isJsonObject(schema.properties) ? schema.properties : {});
  const warnings = Object.keys(isJsonObject(value) ? value : {})
    .filter((name) => !known.includes(name))
    .map((name) => ({ pointer: pointerTo('', name), message: 'is unknown and has no effect' }));
  return { violations: located(violations), warnings: located(warnings), readings: located(readings) };
}

/** Rules that a schema cannot express: quotes of a command, placeholders. */
function beyondSchema(text: string, folder: string | undefined): Remark[] {
  try {
    readTemplate(text, folder);
    return [];
  } catch (thrown) {
    if (!(thrown instanceof TemplateError)) throw thrown;
    return thrown.issues.map((issue) => {
      const [, path = '', message = issue] = /^([^:\s]+): (.*)$/s.exec(issue) ?? [];
      return {
        pointer: path
          .replace(/^(?=.)/, '/')
          .replaceAll(/[.[]/g, '/')
          .replaceAll(']', ''),
        message,
      };
    });
  }
}

async function readSchema(): Promise<JsonObject> {
  const schema: unknown = JSON.parse(await readFile(TEMPLATE_SCHEMA, 'utf8'));
  return isJsonObject(schema) ? schema : {};
}

function remarkOn({ keyword, params, message, propertyName, ...error }: ErrorObject, parent = ''): Remark {
  const instancePath = parent + error.instancePath;
  if (keyword === 'required')
    return { pointer: pointerTo(instancePath, params.missingProperty), message: 'is missing' };
  if (keyword === 'propertyNames')
    return { pointer: pointerTo(instancePath, params.propertyName), message: 'is not a valid name' };
  if (propertyName !== undefined)
    return { pointer: pointerTo(instancePath, propertyName), message: 'is not a valid name' };
  if (keyword === 'enum')
    return { pointer: instancePath, message: `must be one of ${params.allowedValues.join(', ')}` };
  return { pointer: instancePath, message: message ?? keyword };
}

/** A bad name is reported twice: for the rule of names, and for the rule inside it. */
function distinct(remarks: readonly Remark[]): Remark[] {
  return [...new Map(remarks.map((remark) => [`${remark.pointer}\0${remark.message}`, remark])).values()];
}

function pointerTo(parent: string, name: string): string {
  return `${parent}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The line in which the value at a pointer begins; for a missing value, the line of its parent. */
async function linesOf(text: string): Promise<(pointer: string) => number | undefined> {
  const { findNodeAtLocation, parseTree } = await import('jsonc-parser');
  let root: ReturnType<typeof parseTree>;
  try {
    root = parseTree(text);
  } catch {
    return () => undefined; // nested too deeply for that parser
  }
  return (pointer) => {
    let node = root;
    for (const word of pointer.split('/').slice(1)) {
      const name = word.replaceAll('~1', '/').replaceAll('~0', '~');
      const next = node && findNodeAtLocation(node, [node.type === 'array' ? Number(name) : name]);
      if (next === undefined) break;
      node = next;
    }
    return node && text.slice(0, node.offset).split('\n').length;
  };
}

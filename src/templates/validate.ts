// Holds the text of a template.json against schemas/template.schema.json, with the reference validator of draft-07, and tells
// where each violation is. The gateway itself reads definitions with definition.ts, which is lighter and says less.

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { ErrorObject } from 'ajv';
import { isJsonObject, type JsonObject } from '../domain/json.ts';
import { readTemplate, TemplateError } from './definition.ts';

/** The published schema; templates name it as `$schema`. */
export const TEMPLATE_SCHEMA = fileURLToPath(new URL('../../schemas/template.schema.json', import.meta.url));

/** Something at one place of a definition. */
export interface Remark {
  /** JSON pointer; empty for the whole document. */
  readonly pointer: string;
  /** Of the file, from 1; absent where it is not known. */
  readonly line?: number;
  readonly message: string;
}

/** What a definition looks like to the validator. */
export interface Validation {
  readonly violations: readonly Remark[];
  /** Properties that have no effect. */
  readonly warnings: readonly Remark[];
}

/** Throws TemplateError for a text that is no JSON. */
export async function validateTemplate(text: string): Promise<Validation> {
  const value = parseTemplate(text);
  const [{ Ajv }, schema, lineOf] = await Promise.all([import('ajv'), readSchema(), linesOf(text)]);
  const located = ({ pointer, message }: Remark): Remark => {
    const line = lineOf(pointer);
    return { pointer, ...(line === undefined ? {} : { line }), message };
  };
  const check = new Ajv({ allErrors: true, strict: false }).compile(schema);
  if (!check(value))
    return { violations: distinct((check.errors ?? []).map(remarkOn)).map(located), warnings: [] };
  const known = Object.keys(isJsonObject(schema.properties) ? schema.properties : {});
  const warnings = Object.keys(isJsonObject(value) ? value : {})
    .filter((name) => !known.includes(name))
    .map((name) => ({ pointer: pointerTo('', name), message: 'is unknown and has no effect' }));
  return { violations: beyondSchema(text).map(located), warnings: warnings.map(located) };
}

/** The value of the text. Throws TemplateError. */
export function parseTemplate(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    readTemplate(text); // says why, in one line that repeats nothing
    throw new TemplateError(['not JSON']);
  }
}

/** What a schema cannot say: quotes of a command, placeholders. */
function beyondSchema(text: string): Remark[] {
  try {
    readTemplate(text);
    return [];
  } catch (thrown) {
    if (!(thrown instanceof TemplateError)) throw thrown;
    return thrown.findings.map((finding) => {
      const [, path = '', message = finding] = /^([^:\s]+): (.*)$/s.exec(finding) ?? [];
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

function remarkOn({ instancePath, keyword, params, message, propertyName }: ErrorObject): Remark {
  if (keyword === 'required')
    return { pointer: pointerTo(instancePath, params.missingProperty), message: 'is missing' };
  if (keyword === 'propertyNames')
    return { pointer: pointerTo(instancePath, params.propertyName), message: 'is no valid name' };
  if (propertyName !== undefined)
    return { pointer: pointerTo(instancePath, propertyName), message: 'is no valid name' };
  if (keyword === 'enum')
    return { pointer: instancePath, message: `must be one of ${params.allowedValues.join(', ')}` };
  return { pointer: instancePath, message: message ?? keyword };
}

/** A bad name is reported twice: by the rule of names, and by what that rule says. */
function distinct(remarks: readonly Remark[]): Remark[] {
  return [...new Map(remarks.map((remark) => [`${remark.pointer}\0${remark.message}`, remark])).values()];
}

function pointerTo(parent: string, name: string): string {
  return `${parent}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The line in which the value at a pointer begins. JSON is YAML, whose parser knows where everything stands. */
async function linesOf(text: string): Promise<(pointer: string) => number | undefined> {
  const { isNode, LineCounter, parseDocument } = await import('yaml');
  const lineCounter = new LineCounter();
  let document: ReturnType<typeof parseDocument>;
  try {
    document = parseDocument(text, { lineCounter, logLevel: 'silent' });
  } catch {
    return () => undefined; // nested too deeply for that parser
  }
  return (pointer) => {
    const path = pointer
      .split('/')
      .slice(1)
      .map((word) => word.replaceAll('~1', '/').replaceAll('~0', '~'));
    // What is missing is missing in its parent.
    for (let length = path.length; length >= 0; length -= 1) {
      const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return lineCounter.linePos(node.range[0]).line;
    }
    return undefined;
  };
}

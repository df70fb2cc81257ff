// Checks the text of a template.json against schemas/template.schema.json, with the reference validator of
// draft-07, and reports the JSON pointer of each violation. The gateway reads definitions with definition.ts,
// which is lighter and reports less.

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { ErrorObject } from 'ajv';
import { isJsonObject, type JsonObject } from '../domain/json/json.ts';
import { PACKAGE_ROOT } from '../domain/package-root.ts';
import { parseTemplate, readTemplate, TemplateError } from './definition.ts';
import { pointerTo, type Remark, tolerated } from './tolerant.ts';

/** The published schema; templates name it as `$schema`. */
const TEMPLATE_SCHEMA = fileURLToPath(new URL('schemas/template.schema.json', PACKAGE_ROOT));

interface Validation {
  readonly violations: readonly Remark[];
  /** The remarks on properties that have no effect. */
  readonly warnings: readonly Remark[];
  /** The remarks on values that were converted from the form of another platform; only with `isTolerant`. */
  readonly readings: readonly Remark[];
}

/**
 * Checks a text. Throws TemplateError for one that is not JSON. `isTolerant`: forms of other platforms are converted,
 * as in the gateway.
 */
export async function validateTemplate(
  text: string,
  { isTolerant = false, folder }: { readonly isTolerant?: boolean; readonly folder?: string } = {},
): Promise<Validation> {
  const written = parseTemplate(text);
  const { value, readings } = isTolerant ? tolerated(written, folder) : { value: written, readings: [] };
  const [{ Ajv }, published] = await Promise.all([import('ajv'), readFile(TEMPLATE_SCHEMA, 'utf8')]);
  const schema: JsonObject = JSON.parse(published);
  const ajv = new Ajv({ allErrors: true, strict: false, logger: false });
  const check = ajv.compile(schema);
  const isWellFormed = check(value);
  const config = isJsonObject(value) ? value.config_schema : undefined;
  // The gateway does not read $schema either, and the validator throws for a revision that it does not have.
  const { $schema, ...settings } = isJsonObject(config) ? config : {};
  ajv.validateSchema(settings);
  const violations = [
    ...(check.errors ?? []).flatMap((error) => remarksOn(error)),
    ...(ajv.errors ?? []).flatMap((error) => remarksOn(error, '/config_schema')),
    ...(isWellFormed ? beyondSchema(text, folder) : []),
  ];
  const known = Object.keys(isJsonObject(schema.properties) ? schema.properties : {});
  const warnings = Object.keys(isJsonObject(value) ? value : {})
    .filter((name) => !known.includes(name))
    .map((name) => ({ pointer: pointerTo('', name), message: 'is unknown and has no effect' }));
  return { violations, warnings, readings };
}

/** The faults by rules that a schema cannot express: quotes of a command, placeholders. */
function beyondSchema(text: string, folder: string | undefined): Remark[] {
  try {
    readTemplate(text, folder);
    return [];
  } catch (thrown) {
    if (!(thrown instanceof TemplateError)) throw thrown;
    return thrown.issues.map((message) => ({ pointer: '', message }));
  }
}

function remarksOn({ keyword, params, message, propertyName, ...error }: ErrorObject, parent = ''): Remark[] {
  if (keyword === 'propertyNames') return []; // the rule that the name breaks is an error of its own
  const instancePath = parent + error.instancePath;
  const pointer = propertyName === undefined ? instancePath : pointerTo(instancePath, propertyName);
  const values = keyword === 'enum' ? `: ${params.allowedValues.join(', ')}` : '';
  return [{ pointer, message: (message ?? keyword) + values }];
}

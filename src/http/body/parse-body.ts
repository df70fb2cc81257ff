// Parses the bytes of a body strictly, as JSON or as a form. readers.ts reads them.

import { isUtf8 } from 'node:buffer';
import type { ValidationItem } from '../../domain/errors/errors.ts';
import { malformedJson, validationFailed } from '../../domain/errors/request-errors.ts';
import { inspect } from '../../domain/errors/validation.ts';
import { fieldValue, type JsonFields, JsonText } from '../../domain/json/json.ts';
import {
  type Excess,
  NO_INDEX,
  OPEN_BRACE,
  readFields,
  type Scanned,
  SHORT_TEXT,
  scanned,
  setField,
  skipSpace,
  skipValue,
} from '../../domain/json/json-scanner.ts';
import { LIMITS } from '../../domain/limits.ts';
import { HIDES_BAD_TEXT, hasManyFields, NOT_UNICODE } from '../../domain/text.ts';

/**
 * Parses JSON. Raises MALFORMED_JSON for broken UTF-8 and broken JSON; VALIDATION_ERROR for an empty body, for NUL
 * characters and lone surrogates anywhere, for more levels than the limit and for more than `mostValues` values.
 */
export function parseJsonBody(bytes: Buffer, mostValues: number = LIMITS.bodyValues): unknown {
  const { text, source } = checkedBody(bytes, mostValues);
  skipValue(source, skipSpace(bytes, 0));
  refuseExcess(source, mostValues);
  const value = parse(text);
  // A body without an escape has no invalid string: most bodies are not inspected.
  const issues = text.includes('\\u') ? inspect(value) : [];
  if (issues.length > 0) throw validationFailed(issues);
  return value;
}

/**
 * Reads the JSON of a call: its fields are put into `fields`, as text for forwarding (readFields), and returned as
 * values, with an empty object or array for `arguments`, which are not parsed. Texts in arrays and objects pass as
 * they are, and the values in `arguments` are not counted. Optional fields that are null are absent. Raises the
 * same errors.
 */
export function parseCallBody(bytes: Buffer, fields: Record<string, JsonFields[string]>): unknown {
  const { text, source } = checkedBody(bytes, LIMITS.bodyValues);
  const start = skipSpace(bytes, 0);
  const isObject = bytes[start] === OPEN_BRACE;
  const end = isObject ? readFields(source, start, fields) : skipValue(source, start);
  refuseExcess(source, LIMITS.bodyValues);
  if (!isObject || end === NO_INDEX || skipSpace(bytes, end) !== bytes.length) return parse(text);
  for (const name of OPTIONAL_FIELDS) if (fields[name] === null) delete fields[name];
  if (text.includes('\\u')) {
    const names = Object.entries(fields).filter(([, field]) => typeof field === 'string');
    const issues = inspect(Object.fromEntries(names));
    if (issues.length > 0) throw validationFailed(issues);
  }
  const values: Record<string, unknown> = {};
  for (const name of Object.keys(fields)) setField(values, name, checkedValue(name, fields[name]));
  return values;
}

const OPTIONAL_FIELDS = ['arguments', 'context', '_meta'];

function checkedValue(name: string, field: JsonFields[string]): unknown {
  if (name !== 'arguments' || !(field instanceof JsonText)) return fieldValue(field);
  if (field.text.startsWith('{')) return {};
  return field.text.startsWith('[') ? [] : field.value;
}

function checkedBody(bytes: Buffer, mostValues: number) {
  if (bytes.length === 0) throw validationFailed([MISSING_BODY]);
  if (!isUtf8(bytes)) throw malformedJson('it is not UTF-8');
  const text = bytes.toString('utf8');
  const bounds = { levels: LIMITS.nestingDepth, values: mostValues };
  return { text, source: scanned(bytes, bounds, bytes.length <= SHORT_TEXT ? text : '') };
}

function refuseExcess({ excess }: Scanned, mostValues: number): void {
  if (excess !== undefined) throw validationFailed([tooMuch(excess, mostValues)]);
}

const MISSING_BODY: ValidationItem = { loc: ['body'], msg: 'Field required', type: 'missing' };

function tooMuch(excess: Excess, mostValues: number): ValidationItem {
  const what =
    excess === 'depth'
      ? `nested deeper than ${LIMITS.nestingDepth} levels`
      : `more than ${mostValues} values`;
  return { loc: ['body'], msg: `Value error, ${what}`, type: 'value_error' };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    // A bare NUL is always a syntax error.
    if (text.includes('\0')) throw validationFailed([{ loc: ['body'], ...NOT_UNICODE }]);
    throw malformedJson(syntaxErrorOf(cause), cause);
  }
}

/** The position from the message of V8, which quotes the input and is therefore not repeated. */
function syntaxErrorOf(thrown: unknown): string {
  const position = thrown instanceof Error ? /at position (\d+)/.exec(thrown.message)?.[1] : undefined;
  return position === undefined
    ? 'it ends too early or is not JSON at all'
    : `syntax error at character ${position}`;
}

/**
 * Parses `application/x-www-form-urlencoded`, the body of a login. Raises VALIDATION_ERROR for broken UTF-8, NUL
 * characters, encoded surrogates, and repeated fields. Source: RFC 6749 section 3.2 for repeated fields.
 */
export function parseFormBody(bytes: Buffer): Readonly<Record<string, string>> {
  const text = bytes.toString('utf8');
  const isBad = !isUtf8(bytes) || text.includes('\0') || HIDES_BAD_TEXT.test(text);
  if (isBad) throw validationFailed([{ loc: ['body'], ...NOT_UNICODE }]);
  if (hasManyFields(text)) throw validationFailed([tooMuch('values', LIMITS.formFields)]);
  const pairs = [...new URLSearchParams(text)];
  if (new Set(pairs.map(([name]) => name)).size < pairs.length) throw validationFailed([TWICE]);
  return Object.fromEntries(pairs);
}

const TWICE: ValidationItem = {
  loc: ['body'],
  msg: 'Value error, a field occurs more than once',
  type: 'value_error',
};

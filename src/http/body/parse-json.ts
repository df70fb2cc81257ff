// Bytes of a body to a JSON value, strictly. Every refusal of a body that is about its content starts here.

import { isUtf8 } from 'node:buffer';
import type { ValidationItem } from '../../domain/errors.ts';
import { inspect } from '../../domain/inspect.ts';
import type { JsonFields } from '../../domain/json.ts';
import {
  type Excess,
  readFields,
  SHORT_TEXT,
  scanned,
  skipSpace,
  skipValue,
} from '../../domain/json-scanner.ts';
import { LIMITS } from '../../domain/limits.ts';
import { malformedJson, validationFailed } from '../../domain/request-errors.ts';
import { NOT_UNICODE } from '../../domain/text.ts';

/**
 * Parses a body; the fields of an object are put into `fields`, too, as text where they are passed on (readFields). Raises
 * MALFORMED_JSON for broken UTF-8 and broken JSON; VALIDATION_ERROR for an empty body, for NUL characters and lone
 * surrogates anywhere, and for more levels or values than the limits. Source: decisions, "Guard" and "Errors"; ADR 42, 43.
 */
export function parseJsonBody(bytes: Buffer, fields: Record<string, JsonFields[string]> = {}): unknown {
  if (bytes.length === 0) throw validationFailed([MISSING_BODY]);
  if (!isUtf8(bytes)) throw malformedJson('it is not UTF-8');
  const text = bytes.toString('utf8');
  const source = scanned(bytes, BOUNDS, bytes.length <= SHORT_TEXT ? text : '');
  const start = skipSpace(bytes, 0);
  if (bytes[start] === OPEN_BRACE) readFields(source, start, fields);
  else skipValue(source, start);
  if (source.excess !== undefined) throw validationFailed([TOO_MUCH[source.excess]]);
  const value = parse(text);
  // Without an escape nothing bad can be in a string: most bodies are not walked.
  const findings = text.includes('\\u') ? inspect(value) : [];
  if (findings.length > 0) throw validationFailed(findings);
  return value;
}

const BOUNDS = { levels: LIMITS.nestingDepth, values: LIMITS.bodyValues };
const OPEN_BRACE = 0x7b;

const MISSING_BODY: ValidationItem = { loc: ['body'], msg: 'Field required', type: 'missing' };

const TOO_MUCH: Readonly<Record<Excess, ValidationItem>> = {
  depth: {
    loc: ['body'],
    msg: `Value error, nested deeper than ${LIMITS.nestingDepth} levels`,
    type: 'value_error',
  },
  values: { loc: ['body'], msg: `Value error, more than ${LIMITS.bodyValues} values`, type: 'value_error' },
};

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    // A bare NUL always ends up here, because JSON forbids it everywhere.
    if (text.includes('\0')) throw validationFailed([{ loc: ['body'], ...NOT_UNICODE }]);
    throw malformedJson(whereItBroke(cause), cause);
  }
}

/** Position from V8's message; its text quotes the input and is not repeated. */
function whereItBroke(thrown: unknown): string {
  const position = thrown instanceof Error ? /at position (\d+)/.exec(thrown.message)?.[1] : undefined;
  return position === undefined
    ? 'it ends too early or is no JSON at all'
    : `it breaks at character ${position}`;
}

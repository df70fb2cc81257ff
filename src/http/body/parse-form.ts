// Bytes of a form to an object of texts, strictly: the body of a login, as browsers and OAuth clients send it.

import { isUtf8 } from 'node:buffer';
import type { ValidationItem } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { validationFailed } from '../../domain/request-errors.ts';
import { isCleanText, NOT_UNICODE } from '../../domain/text.ts';
import { HTTP_LIMITS } from '../limits.ts';

/**
 * Parses `application/x-www-form-urlencoded`. Raises VALIDATION_ERROR for what is not UTF-8, NUL characters, a field that
 * stands there twice and more fields than the limit. A `%` that begins no escape stays as it is, as in browsers. Sources:
 * the URL standard, "application/x-www-form-urlencoded"; RFC 6749 section 3.2 for fields that come twice.
 */
export function parseFormBody(bytes: Buffer): Readonly<Record<string, string>> {
  const pairs = bytes.toString('latin1').split('&', HTTP_LIMITS.formFields + 1);
  if (pairs.length > HTTP_LIMITS.formFields) throw refused(['body'], TOO_MANY);
  const fields = new Map<string, string>();
  for (const pair of pairs) {
    if (pair === '') continue;
    const split = pair.indexOf('=');
    const name = decode(split === -1 ? pair : pair.slice(0, split));
    if (name === undefined) throw refused(['body'], NOT_UNICODE);
    const loc = ['body', name.slice(0, LIMITS.locCharacters)];
    if (fields.has(name)) throw refused(loc, TWICE);
    const value = decode(split === -1 ? '' : pair.slice(split + 1));
    if (value === undefined) throw refused(loc, NOT_UNICODE);
    fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

type Fault = Pick<ValidationItem, 'msg' | 'type'>;

const TWICE: Fault = { msg: 'Value error, the field stands here more than once', type: 'value_error' };
const TOO_MANY: Fault = {
  msg: `Value error, a form has at most ${HTTP_LIMITS.formFields} fields`,
  type: 'value_error',
};

function refused(loc: ValidationItem['loc'], fault: Fault) {
  return validationFailed([{ loc, ...fault }]);
}

/** One name or value; undefined when it is no proper Unicode text. One character of `written` is one byte. */
function decode(written: string): string | undefined {
  const latin1 = written
    .replaceAll('+', ' ')
    .replace(/%([0-9a-f]{2})/gi, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  const bytes = Buffer.from(latin1, 'latin1');
  const text = bytes.toString('utf8');
  return isUtf8(bytes) && isCleanText(text) ? text : undefined;
}

// The secrets that an instance got from the gateway. They are hidden in the texts of its server: errors, texts of refusals
// and lines of output have `***` in the place of each secret. Results pass unchanged.

import type { JsonRpcError } from '../mcp/jsonrpc.ts';
import type { InstanceDefinition } from './instance.ts';
import { isSecretName } from './secret-names.ts';

/** A shorter value is not hidden, since it stands in many texts. */
const MIN_SECRET_LENGTH = 3;
/** A shorter value is hidden only as a whole word, since it may be a part of other words. */
const MIN_PART_LENGTH = 5;
const NO_SECRETS: ReadonlySet<string> = new Set(['true', 'false', 'null', 'none', 'yes', 'off']);

/**
 * Values and parts of values of one instance that are hidden, each in some forms. Of an instance with more nothing is shown that
 * its server says: callers may register it, and its server chooses the texts in which each is looked for.
 */
export const MAX_HIDDEN = 1_000;
/** Their stand-in, at the end of the list: each text has the empty one. */
const TOO_MANY: readonly string[] = [''];
/** Characters of a text times secrets, in which a text takes some 50 ms. Of a longer one nothing is shown. */
const MAX_STEPS = 8_000_000;
/** The same for the data of an error, each text of which is looked through by itself. Of larger data nothing is shown. */
const MAX_DATA_STEPS = 1_000_000;
/** Further characters of a long secret are not searched for: what begins like it is hidden as far as it goes on like it. */
const MAX_SEARCHED_LENGTH = 32;
const HIDDEN = '***';

/** The text with `***` for each secret. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  if (secrets.at(-1) === '' || text.length * secrets.length > MAX_STEPS) return HIDDEN;
  return secrets.reduce(withoutSecret, text);
}

function withoutSecret(text: string, secret: string): string {
  const beginning = secret.slice(0, MAX_SEARCHED_LENGTH);
  const mayBePart = secret.length >= MIN_PART_LENGTH;
  let [shown, shownTo] = ['', 0];
  for (let at = text.indexOf(beginning); at !== -1; ) {
    let end = at + beginning.length;
    while (end < at + secret.length && text.charCodeAt(end) === secret.charCodeAt(end - at)) end += 1;
    const isWhole = mayBePart || !(IN_WORD.test(text.charAt(at - 1)) || IN_WORD.test(text.charAt(end)));
    if (isWhole) {
      shown += text.slice(shownTo, at) + HIDDEN;
      shownTo = end;
    }
    at = text.indexOf(beginning, isWhole ? end : at + 1);
  }
  return shownTo === 0 ? text : shown + text.slice(shownTo);
}

const IN_WORD = /[A-Za-z0-9]/;

/**
 * The first `units` of the text without secrets. Secrets are hidden before the text is cut, so that no part
 * of one remains.
 */
export function cutWithoutSecrets(text: string, units: number, secrets: readonly string[]): string {
  const read = text.slice(0, units + longestOf(secrets));
  const hidden = withoutSecrets(read, secrets);
  return hidden.slice(0, Math.max(0, hidden.length - Math.max(0, read.length - units)));
}

/** UTF-16 units of the longest secret; 0 without any. */
export function longestOf(secrets: readonly string[]): number {
  return secrets.reduce((most, { length }) => Math.max(most, length), 0);
}

/**
 * An error of a server with `***` for each secret in its message, and in the texts and numbers of its data. Without data that are
 * too large.
 */
export function errorWithoutSecrets(error: JsonRpcError, secrets: readonly string[]): JsonRpcError {
  if (secrets.length === 0) return error;
  const { data, ...rest } = error;
  const shown = { ...rest, message: withoutSecrets(error.message, secrets) };
  if (data === undefined) return shown;
  const written = JSON.stringify(data);
  if (secrets.at(-1) === '' || written.length * secrets.length > MAX_DATA_STEPS) return shown;
  const hidden = written.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?/g, (token) => {
    const plain = token.startsWith('"') ? String(JSON.parse(token)) : token;
    const safe = withoutSecrets(plain, secrets);
    return safe === plain ? token : JSON.stringify(safe);
  });
  return { ...shown, data: hidden === written ? data : JSON.parse(hidden) };
}

/**
 * The values of headers and variables of an instance, and of the query of its endpoint, in the forms in which
 * servers may repeat them: whole; a credential without its scheme; the name and password of Basic; each cookie; lines
 * and items of a secret variable; and with the escapes of JSON, URLs and HTML. Longest first. Of more than MAX_HIDDEN only
 * TOO_MANY.
 */
export function secretsOf(instance: SecretFields): readonly string[] {
  const values = new Set<string>();
  for (const value of valuesOf(instance)) {
    if (isHidden(value)) values.add(value);
    if (values.size > MAX_HIDDEN) return TOO_MANY;
  }
  const written = [...values].flatMap((value) => [
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value.toWellFormed()),
    value.replace(/[&<>"']/g, (sign) => HTML_SIGNS[sign] ?? sign),
  ]);
  return [...new Set(written)].sort((one, other) => other.length - one.length);
}

type SecretFields = Pick<InstanceDefinition, 'headers'> &
  Partial<Pick<InstanceDefinition, 'endpoint' | 'env' | 'secretEnv'>>;

function* valuesOf({ endpoint = '', headers, env = {}, secretEnv = [] }: SecretFields): Generator<string> {
  for (const header of Object.values(headers)) yield* partsOf(header);
  yield* Object.values(env);
  for (const name of secretEnv) yield* itemsOf(env[name] ?? '');
  if (URL.canParse(endpoint)) yield* new URL(endpoint).searchParams.values();
}

/** One warning line for each secret variable whose value cannot be hidden. */
export function shortSecrets({ env, secretEnv = [] }: ProgramVariables): string[] {
  const short = secretEnv.filter(
    (name) => env[name] !== undefined && env[name] !== '' && !isHidden(env[name]),
  );
  return short.map(
    (name) => `the value of ${name} is too short or too common a word to be hidden in errors and output`,
  );
}

function isHidden(value: string): boolean {
  return value.length >= MIN_SECRET_LENGTH && !NO_SECRETS.has(value);
}

/**
 * The values that errors and output of a program must not show: variables that are declared secret, those
 * with names of credentials, and passwords in URLs. Other variables are left out, because programs name the folders,
 * modes and levels that they got.
 */
export function programSecrets({ env, secretEnv = [] }: ProgramVariables): readonly string[] {
  const named = Object.entries(env).filter(([name]) => secretEnv.includes(name) || isSecretName(name));
  const inUrls = Object.entries(env).flatMap(([name, value]) => {
    const { password = '' } = URL.canParse(value) ? new URL(value) : {};
    return [
      [`${name} as written`, password],
      [`${name} decoded`, decodedPart(password)],
    ];
  });
  return secretsOf({ headers: {}, env: Object.fromEntries([...named, ...inUrls]), secretEnv });
}

type ProgramVariables = Pick<InstanceDefinition, 'env' | 'secretEnv'>;

function decodedPart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // it is not escaped
  }
}

const HTML_SIGNS: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** The lines and list items of a value, and the values in JSON, without those that may be parts of other words. */
function itemsOf(value: string): readonly string[] {
  const items = value.split(/[\r\n,;|]+/).map((item) => item.trim());
  const inJson: string[] = [];
  if (/^[{[]/.test(value))
    try {
      JSON.parse(value, (_name, each: unknown) => void inJson.push(String(each)));
    } catch {
      // it only begins like JSON
    }
  return [...items, ...inJson].filter(({ length }) => length >= MIN_PART_LENGTH);
}

function partsOf(header: string): string[] {
  const [, scheme = '', credential = ''] = /^(\S+) +(.+)$/.exec(header) ?? [];
  const parts = [header, credential, ...header.split(/; */).map((cookie) => cookie.replace(/^[^=]*=/, ''))];
  if (scheme.toLowerCase() !== 'basic') return parts;
  const plain = Buffer.from(credential, 'base64').toString('utf8');
  return [...parts, plain, ...plain.split(/:(.*)/s)];
}

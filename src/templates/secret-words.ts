// Finds secrets in the words of a command and in addresses: by the names beside them, by the parts of a URL, and
// by the form of tokens.

import { isSecretName } from '../domain/instances/secret-names.ts';

/** The word with `***` for each secret in it; placeholders stay. `before`: the word before it, which may be its option. */
export function withoutSecretWord(word: string, before = ''): string {
  const [, option = ''] = /^-{1,2}([\w-]+)$/.exec(before) ?? [];
  if (!word.startsWith('-') && isSecretName(option)) return masked(word);
  const [, prefix = '', name = '', value = ''] = /^(-{1,2}([\w-]+)=)(.*)$/s.exec(word) ?? [];
  if (isSecretName(name)) return prefix + masked(value);
  const isHeader = HEADER_OPTION.test(option) || HEADER_OPTION.test(name);
  return word
    .replace(ADDRESS, (address) => shownAddress(address))
    .replace(ASSIGNMENT, hideNamed)
    .replace(HEADER, hideNamed)
    .replace(IN_JSON, hideNamed)
    .replace(isHeader ? SHORT_HEADER : NOTHING, (_, start: string, text: string) => start + masked(text))
    .replace(/\bBearer\s+[^\s"']+/gi, (text) => `Bearer ${masked(text.replace(/^Bearer\s+/i, ''))}`)
    .replace(TOKEN, '***');
}

/** The address without its secrets: user, password and, where a parameter is one, the query. */
export function shownAddress(address: string): string {
  const plain = address.replaceAll(/\$\{[^}]{1,200}\}/g, '');
  if (!hasSecret(plain)) return address;
  if (!/^https?:/i.test(address)) return new URL(plain).password === '' ? address : '***';
  const { origin, pathname } = new URL(plain);
  return `${origin}${pathname}?***`;
}

/** True for an address with credentials in it. */
export function hasSecret(endpoint: string): boolean {
  if (!URL.canParse(endpoint)) return false;
  const { searchParams, username, password } = new URL(endpoint);
  const isNamed = [...searchParams].some(([name, value]) => isSecretName(name) && value !== '');
  return username !== '' || password !== '' || isNamed;
}

const HEADER_OPTION = /^(?:H|headers?)$/;
// With bounds: an import reads files of 5 MiB.
const ADDRESS = /\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s"'<>]+/gi;
const ASSIGNMENT = /(^|[\s;&|?"'(,=/]|^-e)([A-Za-z_][\w.-]{0,200}=)("[^"]*"|'[^']*'|[^\s;&|"')*]+)/g;
const HEADER = /(^|[\s"'=])([A-Za-z][\w-]{0,200}:\s+(?:(?:Bearer|Basic|Token)\s+)?)([^\s"'*]+)/gi;
const IN_JSON = /(")([\w.-]{1,200}"\s{0,9}:\s{0,9}")((?:[^"\\*]|\\.)+)/g;
const SHORT_HEADER = /^((?:-{1,2}[\w-]+=)?[\w-]+:\s*(?:(?:Bearer|Basic|Token)\s+)?)([^\s*].*)$/is;
const NOTHING = /(?!)/;
const TOKEN =
  /(?<![\w.-])(?:gh[opsur]_|github_pat_|glpat-|sk-|xox[a-z]-|AKIA|eyJ[\w-]{8,2000}\.)[\w.-]{12,}/g;

function hideNamed(text: string, start: string, named: string, value: string): string {
  return isSecretName(named.replace(/[^\w.-].*$/s, '')) ? start + named + masked(value) : text;
}

/** The value as `***`; unchanged if it has nothing but placeholders. */
function masked(value: string): string {
  const rest = value.replaceAll(/\$\{[^}]{1,200}\}/g, '').replace(/^\s*Bearer/i, '');
  return rest.trim() === '' ? value : '***';
}

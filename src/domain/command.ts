// The command of an instance: how it is split into words without a shell, which commands callers without the scope `admin` may
// register, because a command is code that this machine runs, and which variables of the gateway programs get by default.
// Source: ADR 20, ADR 52.

/** The words, or why there are none: a quote that is never closed. */
export type CommandWords = { readonly words: readonly string[] } | { readonly problem: string };

const BACKSLASH = '\\';
const OUTSIDE_QUOTES = ' \t\r\n\'"\\';
const INSIDE_DOUBLE_QUOTES = '"\\';
/** How a network path of Windows starts: `\\server`, `\\?\C:`, `\\.\pipe`. */
const NETWORK_PATH = /^\\\\[A-Za-z0-9?.]/;

/**
 * Splits `text` the way POSIX shells do, with one difference that lets Windows paths survive on every platform.
 *
 * - Words are separated by spaces, tabs and line breaks.
 * - `'...'` keeps everything as it is; `"..."` keeps everything but `\"` and `\\`.
 * - Outside quotes a backslash escapes a space, a quote or a backslash, and joins lines. Before any other character it is kept, so
 *   that `C:\tools\run.exe` is one word (a shell would remove it).
 * - Two backslashes at the start of a word are kept: `\\server\share` is a network path of Windows.
 *
 * A path that ends in a backslash or contains spaces must be quoted: `'C:\My Tools\'`. Source: ADR 20.
 */
export function splitCommand(text: string): CommandWords {
  const words: string[] = [];
  let word: string | undefined;
  let at = 0;
  while (at < text.length) {
    const letter = text.charAt(at);
    const joined = letter === BACKSLASH ? lineBreakLength(text, at + 1) : 0;
    if (isSpace(letter)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      at += 1;
    } else if (joined > 0) {
      at += 1 + joined;
    } else {
      const before = word ?? '';
      const part = isQuote(letter)
        ? readQuoted(text, at, before)
        : readPlain(text, at, before, OUTSIDE_QUOTES);
      if (part === undefined) return { problem: `the ${letter} at character ${at + 1} is never closed` };
      word = before + part.content;
      at += part.length;
    }
  }
  if (word !== undefined) words.push(word);
  return { words };
}

/** A part of a word, and how many characters of the text it took. */
interface Part {
  readonly content: string;
  readonly length: number;
}

/** The quoted part that opens at `start`; undefined when it is never closed. */
function readQuoted(text: string, start: number, before: string): Part | undefined {
  const quote = text.charAt(start);
  let content = '';
  let at = start + 1;
  while (at < text.length) {
    if (text.charAt(at) === quote) return { content, length: at + 1 - start };
    const part = readPlain(text, at, before + content, quote === '"' ? INSIDE_DOUBLE_QUOTES : '');
    content += part.content;
    at += part.length;
  }
  return undefined;
}

/** One character, or a backslash with the character that it escapes. */
function readPlain(text: string, at: number, before: string, escapable: string): Part {
  const letter = text.charAt(at);
  if (letter !== BACKSLASH || escapable === '') return { content: letter, length: 1 };
  if (before === '' && NETWORK_PATH.test(text.slice(at, at + 3)))
    return { content: BACKSLASH + BACKSLASH, length: 2 };
  const next = text.charAt(at + 1);
  return next !== '' && escapable.includes(next)
    ? { content: next, length: 2 }
    : { content: letter, length: 1 };
}

function lineBreakLength(text: string, at: number): number {
  if (text.startsWith('\r\n', at)) return 2;
  return text.charAt(at) === '\n' ? 1 : 0;
}

function isSpace(letter: string): boolean {
  return letter === ' ' || letter === '\t' || letter === '\n' || letter === '\r';
}

function isQuote(letter: string): boolean {
  return letter === '"' || letter === "'";
}

/**
 * A command line as words. A word that begins with `*` matches any single word that does not begin with `-`:
 * `['npx', '-y', '@scope/server@1.2.3', '*path']`. The program is always named.
 */
export type AllowedCommand = readonly string[];

export interface WantedCommand {
  readonly words: readonly string[];
  readonly workingDir?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

export interface CommandRules {
  readonly allowed: readonly AllowedCommand[];
  /** Names of variables that the template declares. */
  readonly declaredNames: readonly string[];
}

/** Why the command may not be registered, as a sentence; undefined when it may. */
export function commandRefusal(
  { words, workingDir, env = {} }: WantedCommand,
  { allowed, declaredNames }: CommandRules,
): string | undefined {
  if (!allowed.some((pattern) => fits(pattern, words)))
    return 'This command is not in the list of allowed commands; an admin may register it.';
  if (workingDir !== undefined) return 'Only an admin may choose the working directory of a command.';
  for (const name of Object.keys(env)) {
    if (LOADS_OTHER_CODE.test(name)) return `Only an admin may set ${name}: it decides what code runs.`;
    if (!declaredNames.includes(name)) return `The template does not declare the variable ${name}.`;
  }
  return undefined;
}

/** Variables that make a loader, a shell or an interpreter run other code. */
const LOADS_OTHER_CODE =
  /^(?:PATH|PATHEXT|LD_.*|DYLD_.*|NODE_OPTIONS|NODE_PATH|PYTHON.*|BASH_ENV|ENV|PERL5.*|RUBY(?:OPT|LIB)|JAVA_TOOL_OPTIONS)$/i;

function fits(pattern: AllowedCommand, words: readonly string[]): boolean {
  if (words.length === 0 || pattern.length !== words.length) return false;
  return pattern.every((wanted, index) => fitsWord(wanted, words[index], index));
}

function fitsWord(wanted: string, word: string | undefined, index: number): boolean {
  if (!wanted.startsWith('*')) return wanted === word;
  return index > 0 && word !== undefined && word !== '' && !word.startsWith('-');
}

/** Programs read these in upper or lower case. */
const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'];

/** Source: ADR 52. */
export const PASS_ENV: readonly string[] = [
  ...PROXIES,
  ...PROXIES.map((name) => name.toLowerCase()),
  ...['npm_config_proxy', 'npm_config_https_proxy', 'npm_config_noproxy', 'npm_config_cafile'],
  ...['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'NODE_USE_SYSTEM_CA'],
  ...['REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'PIP_CERT', 'UV_SYSTEM_CERTS', 'UV_NATIVE_TLS'],
];

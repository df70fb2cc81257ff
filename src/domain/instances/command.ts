// The command of an instance: how it is split into words without a shell, which commands callers without the
// scope `admin` may register (a command is code that this machine runs), and which variables of the gateway
// programs get. Source: ADR 20, ADR 52.

import { wordsIn } from '../text.ts';

/** The words, or the reason why there are none: an unclosed quote. */
type CommandWords = { readonly words: readonly string[] } | { readonly problem: string };

/** One of these parts matches at each position of a text: white space, joined lines, parts of words. */
const PARTS = new RegExp(
  [
    /(?<space>[ \t\r\n]+)|(?<join>\\\r?\n)/,
    /'(?<exact>[^']*)'|"(?<quoted>(?:[^"\\]|\\["\\]|\\(?!["\\]))*)"|(?<open>['"])/,
    /\\(?<escaped>[ \t\r\n'"\\])|[^ \t\r\n'"\\]+|\\/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
);

/**
 * Splits `text` the way POSIX shells do, with one difference that lets Windows paths survive on every platform.
 *
 * - Words are separated by spaces, tabs and line breaks.
 * - `'...'` keeps everything as it is; `"..."` keeps everything but `\"` and `\\`.
 * - Outside quotes a backslash escapes a space, a quote or a backslash, and joins lines. Before others it is kept, so
 *   that `C:\tools\run.exe` is one word (a shell would remove it).
 *
 * A path that ends in a backslash, contains spaces or begins with two backslashes must be quoted:
 * `'C:\My Tools\'`. Source: ADR 20.
 */
export function splitCommand(text: string): CommandWords {
  const words: string[] = [];
  let word: string | undefined;
  for (const { 0: part, index, groups = {} } of text.matchAll(PARTS)) {
    const { space, join, exact, quoted, open, escaped } = groups;
    if (open !== undefined) return { problem: `the ${open} at character ${index + 1} is never closed` };
    if (space !== undefined) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (join === undefined) {
      const added = quoted?.replaceAll(/\\(["\\])/g, '$1') ?? exact ?? escaped ?? part;
      word = (word ?? '') + added;
    }
  }
  if (word !== undefined) words.push(word);
  return { words };
}

export interface WrittenCommand {
  readonly command?: string | undefined;
  readonly args?: readonly string[] | undefined;
}

/** Program and arguments. Only a command without `args` is split: with them it is the name of the program, spaces included. */
export function commandWords({ command = '', args }: WrittenCommand): CommandWords {
  return args === undefined ? splitCommand(command) : { words: [command, ...args] };
}

/**
 * A command line as words: `['npx', '-y', '@scope/server@1.2.3', '--read-only']`. A word that begins with `*`, such as `*name`,
 * matches any single word that does not begin with `-`. The program is always named.
 */
export type AllowedCommand = readonly string[];

interface WantedCommand {
  readonly words: readonly string[];
  readonly workingDir?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

export interface CommandRules {
  readonly allowed: readonly AllowedCommand[];
  /** The names of variables that the template declares. */
  readonly declaredNames: readonly string[];
}

/** The reason why the command may not be registered, as a sentence; undefined when it may. */
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

/**
 * Variables that decide which code a loader, a shell, an interpreter or a program that downloads packages runs, by themselves or
 * by the file or the server that they name. Source: ADR 52.
 */
const LOADS_OTHER_CODE = new RegExp(
  `^(?:${wordsIn(
    'PATH PATHEXT COMSPEC LD_.* DYLD_.* GCONV_PATH OPENSSL_.*',
    'HOME USERPROFILE (?:LOCAL)?APPDATA XDG_.*',
    'ENV BASH_.* SHELL SHELLOPTS PS4 PROMPT_COMMAND ZDOTDIR EDITOR VISUAL PAGER BROWSER',
    'NODE_(?!ENV$).* DENO_.* BUN_.* ELECTRON_.* PYTHON.* PERL.* RUBY.* PHPRC PHP_INI_.* LUA_.*',
    '_?JAVA_.* JDK_.* CLASSPATH DOTNET_.* CORECLR_.* ERL_.*',
    'NPM_CONFIG_.* PNPM_.* YARN_.* COREPACK_.* UV_.* PIP_.* PIPX_.* GEM_.* BUNDLE_.*',
    'SSL_CERT_.* REQUESTS_CA_BUNDLE CURL_CA_BUNDLE DOCKER_(?:HOST|CONFIG|CONTEXT) SSH_ASKPASS',
    'KUBECONFIG AWS_CONFIG_FILE',
    'CARGO_.* GOPROXY GOFLAGS GOENV',
    'GIT_(?:ASKPASS|CONFIG.*|EDITOR|EXEC_PATH|EXTERNAL_DIFF|PAGER|PROXY_COMMAND|SEQUENCE_EDITOR|SSH.*|TEMPLATE_DIR)',
    'GIT_(?:DIR|WORK_TREE|COMMON_DIR)',
  ).join('|')})$`,
  'i',
);

function fits(pattern: AllowedCommand, words: readonly string[]): boolean {
  if (words.length === 0 || pattern.length !== words.length) return false;
  return words.every((word, index) => {
    const wanted = pattern[index] ?? '';
    return wanted.startsWith('*') ? index > 0 && word !== '' && !word.startsWith('-') : wanted === word;
  });
}

/** Programs read these in upper or lower case. */
const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'];

/** Source: ADR 52. */
export const PASS_ENV: readonly string[] = [
  ...PROXIES,
  ...PROXIES.map((name) => name.toLowerCase()),
  ...wordsIn(
    'npm_config_proxy npm_config_https_proxy npm_config_noproxy npm_config_cafile',
    'SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS NODE_USE_SYSTEM_CA',
    'REQUESTS_CA_BUNDLE CURL_CA_BUNDLE PIP_CERT UV_SYSTEM_CERTS UV_NATIVE_TLS',
  ),
];

/** The variables of an environment, by name. */
export type Variables = Readonly<Record<string, string | undefined>>;

const COMMON_VARIABLES = ['PATH', 'HOME', 'LANG'];
const WINDOWS_VARIABLES = wordsIn('SystemRoot ComSpec PATHEXT TEMP TMP USERPROFILE APPDATA LOCALAPPDATA');

/** `user:password@`, perhaps after a scheme. */
const CREDENTIALS = /^(?:[a-z][a-z0-9+.-]*:\/\/)?[^/\\]*@/i;

/**
 * The environment of a program: PATH, HOME and LANG (on Windows some more), the variables that `passEnv` names, and its own
 * variables. Default of `passEnv`: PASS_ENV, without URLs that have credentials. No other variable of the gateway is passed.
 */
export function childEnvironment(
  own: Readonly<Record<string, string>>,
  source: Variables = process.env,
  platform: NodeJS.Platform = process.platform,
  passEnv?: readonly string[],
): Record<string, string> {
  const environment: Record<string, string> = {};
  const isWindows = platform === 'win32';
  const always = isWindows ? [...COMMON_VARIABLES, ...WINDOWS_VARIABLES] : COMMON_VARIABLES;
  // Of names that differ only in case, Node passes the first one in alphabetical order, on Windows only.
  const replaced = new Set(isWindows ? Object.keys(own).map((name) => name.toUpperCase()) : []);
  for (const name of [...always, ...(passEnv ?? PASS_ENV)]) {
    const value = source[name];
    if (value === undefined || replaced.has(name.toUpperCase())) continue;
    if (always.includes(name) || passEnv !== undefined || !CREDENTIALS.test(value)) environment[name] = value;
  }
  return { ...environment, ...own };
}

/** The names of PASS_ENV that the gateway has and a program with these variables does not get, ignoring case. */
export function missingVariables(
  own: Readonly<Record<string, string>>,
  passEnv?: readonly string[],
  source: Variables = process.env,
): string[] {
  const given = Object.keys(childEnvironment(own, source, process.platform, passEnv));
  const names = new Set(given.map((name) => name.toUpperCase()));
  return PASS_ENV.filter((name) => source[name] && !names.has(name.toUpperCase()));
}

/** The user that programs run as. */
export interface ProgramUser {
  readonly uid: number;
  readonly gid: number;
  /** The absolute path of a folder that exists. Programs without a working folder run here. */
  readonly home: string;
}

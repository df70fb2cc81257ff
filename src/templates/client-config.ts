// Files in which MCP clients keep their servers: `mcpServers` (Claude Desktop, Claude Code, Cursor and most others), `servers`
// with `inputs` (VS Code). An entry becomes a definition, whose variables, headers and secret words are settings without
// values, and an instance with everything that the entry has.

import { splitCommand } from '../domain/instances/command.ts';
import { isSecretName } from '../domain/instances/secret-names.ts';
import { definedFields, isJsonObject, type JsonObject } from '../domain/json/json.ts';
import { TemplateError } from './definition.ts';
import {
  type ImportedFile,
  type ImportedInstance,
  type ImportedServer,
  type ImportInput,
  idOf,
  type RefusedEntry,
} from './imported-server.ts';
import { hasSecret, withoutSecretWord } from './secret-words.ts';

export function readClientConfig(value: JsonObject, source: string): ImportedFile {
  const nested = isJsonObject(value.mcp) ? value.mcp : {};
  const entries = [value.mcpServers, value.servers, nested.servers].find(isJsonObject);
  if (entries === undefined)
    throw new TemplateError([
      'has none of "mcpServers" (Claude, Cursor), "servers" (VS Code), "packages" and "remotes" (server.json)',
    ]);
  const servers: ImportedServer[] = [];
  const refused: RefusedEntry[] = [];
  for (const [name, entry] of Object.entries(entries)) {
    if (isJsonObject(entry) && (entry.disabled === true || entry.enabled === false)) {
      refused.push({ name, problem: 'is disabled in the file', isDisabled: true });
      continue;
    }
    const read = isJsonObject(entry) ? readEntry(name, entry, source) : 'is not an object';
    if (typeof read === 'string') refused.push({ name, problem: read });
    else servers.push(read);
  }
  const inputs = [value.inputs, nested.inputs].find(Array.isArray) ?? [];
  return { servers, refused, inputs: inputs.filter(isJsonObject).map(inputOf) };
}

function inputOf(written: JsonObject): ImportInput {
  const { id = '', description = '', password, default: usual, options } = written;
  return {
    id: String(id),
    description: String(description || id),
    isSecret: password === true,
    default: typeof usual === 'string' ? usual : undefined,
    options: Array.isArray(options) ? options.map((each) => optionOf(each)) : undefined,
  };
}

function optionOf(option: unknown): string {
  return String(isJsonObject(option) ? option.value : option);
}

/** The fields that say how a server is reached, and have no counterpart here. */
const UNREAD: Readonly<Record<string, string>> = {
  envFile: 'names an envFile, which is not read: write its variables into "env"',
  headersHelper: 'gets its headers from a program (headersHelper): register it with "--auth" or "--header"',
};

function readEntry(name: string, entry: JsonObject, source: string): ImportedServer | string {
  for (const [field, problem] of Object.entries(UNREAD)) if (entry[field] !== undefined) return problem;
  const { command, args = [], env = {}, headers = {}, cwd } = entry;
  const endpoint = entry.url ?? entry.serverUrl ?? entry.httpUrl;
  const problem = problemOf({ command, args, env, headers, cwd, endpoint });
  if (problem !== undefined) return problem;
  const common = { name, description: `Imported from ${source}.`, version: '1.0.0', tags: ['imported'] };
  if (typeof endpoint === 'string') {
    const type = String(entry.type ?? 'auto');
    const transport = Object.hasOwn(TRANSPORTS, type) ? TRANSPORTS[type] : undefined;
    const properties = settingsFor(Object.keys(headers ?? {}), 'header_mapping', () => true);
    const isPublic = !hasSecret(endpoint) && !hasPlaceholder(endpoint);
    const definition: JsonObject = {
      ...common,
      ...definedFields({ transport }),
      ...(isPublic ? { endpoint } : {}),
      ...schemaOf(properties),
    };
    const instance = { endpoint, transport, headers: textsOf(headers) };
    return { name, id: idOf(name), definition, instance, needs: neededBy(instance) };
  }
  const [program = '', ...words] = wordsOf(String(command), Array.isArray(args) ? args.map(String) : []);
  const variables = textsOf(env);
  const secretVariables = Object.keys(variables).filter(
    (each) => isSecretName(each) || withoutSecretWord(variables[each] ?? '') !== variables[each],
  );
  const fixed = words.findIndex((word, index) => isVariable(word, words[index - 1]));
  const [kept, open] = fixed === -1 ? [words, []] : [words.slice(0, fixed), words.slice(fixed)];
  const properties = {
    ...Object.fromEntries(open.map((word, index) => wordSetting(word, words, kept.length + index))),
    ...settingsFor(Object.keys(variables), 'env_mapping', (each) => secretVariables.includes(each)),
  };
  const definition: JsonObject = {
    ...common,
    transport: 'stdio',
    command: program,
    ...(kept.length === 0 ? {} : { args: kept }),
    ...schemaOf(properties),
  };
  const instance: ImportedInstance = {
    command: program,
    args: words,
    env_vars: variables,
    secret_env_vars: secretVariables,
    ...(typeof cwd === 'string' ? { working_dir: cwd } : {}),
  };
  return { name, id: idOf(name), definition, instance, needs: neededBy(instance) };
}

const TRANSPORTS: Readonly<Record<string, string>> = {
  http: 'http',
  'streamable-http': 'http',
  streamableHttp: 'http',
  sse: 'sse',
};

function problemOf({ command, args, env, headers, cwd, endpoint }: JsonObject): string | undefined {
  if (command === undefined && endpoint === undefined) return 'has neither "command" nor "url"';
  if (command !== undefined && (typeof command !== 'string' || command.trim() === ''))
    return '"command" is not a text';
  if (endpoint !== undefined && typeof endpoint !== 'string') return '"url" is not a text';
  if (command !== undefined && endpoint !== undefined) return 'has both "command" and "url"';
  const isWord = (word: unknown) => typeof word === 'string' || typeof word === 'number';
  if (!Array.isArray(args) || !args.every(isWord)) return '"args" is not a list of texts';
  if (cwd !== undefined && cwd !== null && typeof cwd !== 'string') return '"cwd" is not a text';
  for (const [field, texts] of [
    ['env', env],
    ['headers', headers],
  ] as const) {
    if (texts === null) continue;
    if (!isJsonObject(texts)) return `"${field}" is not an object`;
    const wrong = Object.entries(texts).find(([, text]) => typeof text === 'object' && text !== null);
    if (wrong !== undefined) return `"${field}.${wrong[0]}" is not a text`;
  }
  return undefined;
}

/** The words of a command. One that is a whole line is split where it has a secret. */
function wordsOf(command: string, args: readonly string[]): readonly string[] {
  const split = splitCommand(command);
  const isSplit = 'words' in split && withoutSecretWord(command) !== command;
  return [...(isSplit ? split.words : [command]), ...args];
}

/** The values as texts; null, which clients use for "not set", is left out. */
function textsOf(written: unknown): Record<string, string> {
  const entries = Object.entries(isJsonObject(written) ? written : {});
  return Object.fromEntries(entries.flatMap(([name, text]) => (text === null ? [] : [[name, String(text)]])));
}

function settingsFor(
  names: readonly string[],
  place: 'env_mapping' | 'header_mapping',
  isSecret: (name: string) => boolean,
): JsonObject {
  const what = place === 'env_mapping' ? 'Variable' : 'Header';
  return Object.fromEntries(
    names.map((name) => [
      name,
      {
        type: 'string',
        description: `${what} ${name}.`,
        [place]: name,
        ...(isSecret(name) ? { sensitive: true } : {}),
      },
    ]),
  );
}

/** A word of the command from the first variable one on: words of settings follow those of `args`. */
function wordSetting(word: string, words: readonly string[], index: number): [string, JsonObject] {
  const isOpen = isVariable(word, words[index - 1]);
  const shown = withoutSecretWord(word, words[index - 1]);
  const about = { type: 'string', description: `Word ${index + 1} of the command.`, command_arg: true };
  return [`word_${index + 1}`, isOpen ? { ...about, examples: [shown] } : { ...about, default: word }];
}

function schemaOf(properties: JsonObject): JsonObject {
  const required = Object.entries(properties).flatMap(([name, rules]) =>
    isJsonObject(rules) && rules.default === undefined ? [name] : [],
  );
  if (Object.keys(properties).length === 0) return {};
  return { config_schema: { type: 'object', properties, ...(required.length > 0 ? { required } : {}) } };
}

/** True for a word that the definition must not have: a placeholder, or one with a secret in it. */
function isVariable(word: string, before = ''): boolean {
  return hasPlaceholder(word) || withoutSecretWord(word, before) !== word;
}

const PLACEHOLDER = /\$\{[^}]{1,200}\}/;

function hasPlaceholder(text: string): boolean {
  return PLACEHOLDER.test(text);
}

/** The names of values that the file leaves open: placeholders, and secrets that are only hints, such as `<your token>`. */
function neededBy({ command = '', args = [], env_vars = {}, endpoint = '', headers = {} }: ImportedInstance) {
  const texts = [command, endpoint, ...args];
  const named = Object.entries({ ...env_vars, ...headers });
  const placeholders = [...texts, ...named.map(([, text]) => text)].flatMap((text) =>
    [...text.matchAll(/\$\{([^}]{1,200})\}/g)].map(([, name = '']) => name.replace(/:-.*$/s, '')),
  );
  const hints = named.flatMap(([name, text]) => (isHint(name, text) ? [name] : []));
  return [...new Set([...placeholders.filter((name) => !isOfPlace(name)), ...hints])];
}

/** True for a placeholder that only says where the user, the file or its workspace is. */
function isOfPlace(name: string): boolean {
  return /^(userHome|pathSeparator|\/|workspaceFolder(Basename)?(:.*)?)$/.test(name);
}

/** True for a secret without a value: empty, or a text that tells the reader to replace it. */
export function isHint(name: string, text: string): boolean {
  if (!isSecretName(name)) return false;
  return text.trim() === '' || /^(Bearer )?(<[^>]*>|\.{3}|x{3,}|your[-_ ].*|.*[-_]here)$/i.test(text.trim());
}

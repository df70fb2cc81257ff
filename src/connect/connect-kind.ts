// An integration of `stagedoor connect`: the setup of one kind of MCP client for a template. index.ts lists
// all integrations; the command, docs/reference/clients.md and the specs are made from that table.

import { type ConnectTarget, type ConnectTargets, KEY_PLACEHOLDER, keyVariable } from './connect-target.ts';

/**
 * The path of a client's configuration. `~` is the home folder, `%NAME%` a variable of Windows; other paths are in
 * the project.
 */
export interface FileLocations {
  readonly macos: string;
  readonly windows: string;
  readonly linux: string;
}

/** The same path below the home folder, or in the project, on every system. */
export function everywhere(path: string): FileLocations {
  const windows = path.startsWith('~/') ? `%USERPROFILE%\\${path.slice(2).replaceAll('/', '\\')}` : path;
  return { macos: path, windows, linux: path };
}

export function locationText({ macos, windows, linux }: FileLocations): string {
  if (macos === linux && macos === windows) return macos;
  return macos === linux
    ? `${macos} (macOS, Linux), ${windows} (Windows)`
    : `${macos} (macOS), ${linux} (Linux), ${windows} (Windows)`;
}

export interface ConfigFile {
  readonly format: 'json' | 'yaml' | 'toml';
  readonly locations: FileLocations;
  /** The keys that lead to the map of servers: `['mcpServers']`. */
  readonly section: readonly string[];
  /** True when the section is a list of entries that have a `name`, not a map. */
  readonly isList?: boolean;
  readonly preamble?: Readonly<Record<string, string>>;
  readonly entry: (target: ConnectTarget) => Readonly<Record<string, unknown>>;
}

/**
 * A step of the setup. A function makes the step from the name of the variable with the key; it is used only when there is one.
 */
type SetupStep = string | ((variable: string) => string);

export interface ConnectKind {
  readonly name: string;
  readonly title: string;
  /** The supported transports; the first is the default. */
  readonly transports: readonly [ConnectTarget['transport'], ...ConnectTarget['transport'][]];
  readonly language: 'json' | 'yaml' | 'toml' | 'sh' | 'js' | 'python';
  /** The file that `--write` changes; the snippet is its section. */
  readonly file?: ConfigFile;
  readonly snippet: (target: ConnectTarget) => string;
  readonly steps: readonly SetupStep[];
  readonly troubleshooting: readonly string[];
  readonly documentation: readonly string[];
  /**
   * The prefix of the client for names of tools, and the most characters that it or its models accept. Default:
   * nothing is known.
   */
  readonly toolNames?: { readonly prefix: (server: string) => string; readonly most: number };
  /** True when the client sends requests to the HTTP API, and no MCP messages. */
  readonly usesApi?: boolean;
  /** The step by which the client signs its user in where a server asks for it. */
  readonly signIn?: string;
}

/** The tools whose names get too long with the client's own prefix. */
export function overlongTools(
  { toolNames }: Pick<ConnectKind, 'toolNames'>,
  server: string,
  tools: readonly string[],
): readonly string[] {
  if (toolNames === undefined) return [];
  const left = toolNames.most - toolNames.prefix(server).length;
  return tools.filter((tool) => tool.length > left);
}

/** The target of this kind; undefined when the client cannot use it. `wanted`: by this transport only. */
export function targetOf(
  { transports, signIn }: Pick<ConnectKind, 'transports' | 'signIn'>,
  targets: ConnectTargets,
  wanted: ConnectTarget['transport'] | undefined,
): ConnectTarget | undefined {
  if (signIn !== undefined && targets.signIn !== undefined && wanted !== 'stdio') return targets.signIn;
  const transport = wanted ?? transports[0];
  return transports.includes(transport) ? targets[transport] : undefined;
}

/** The steps of the setup for this target. */
export function stepsOf({ steps, signIn }: ConnectKind, target: ConnectTarget): string[] {
  const variable = keyVariable(target);
  const all = steps.flatMap((step) => {
    if (typeof step === 'string') return step;
    return variable === undefined ? [] : step(variable);
  });
  const isSignIn = target.transport === 'http' && target.isSignIn === true;
  return isSignIn && signIn !== undefined ? [...all, signIn] : all;
}

export const SET_VARIABLE: SetupStep = (name) =>
  `Set ${name} to an API key in the environment from which it is started.`;

export const REPLACE_PLACEHOLDER: SetupStep = () =>
  `Replace ${KEY_PLACEHOLDER} with an API key, or run connect again with --key.`;

// An integration of `stagedoor connect`: the setup of one kind of MCP client for a template. index.ts lists
// all integrations; the command, docs/reference/clients.md and the specs are made from that table.

/** The server that a client connects to: a program that it starts, or an endpoint. */
export type ConnectTarget = ProgramTarget | EndpointTarget;

interface CommonTarget {
  readonly template: string;
  readonly url: string;
  /** The credentials that the client needs; undefined when neither the gateway nor the program needs any. */
  readonly key: Key | undefined;
}

/** The target of a client that starts a program and speaks to it over its standard input and output. */
export interface ProgramTarget extends CommonTarget {
  readonly transport: 'stdio';
  /** The bridge to the gateway, the registered command, or a command in a container. */
  readonly program: 'bridge' | 'command' | 'container';
  readonly command: string;
  readonly args: readonly string[];
  /** The variables of the program in addition to the key. */
  readonly env: Readonly<Record<string, string>>;
}

/** The target of a client that sends requests to the MCP endpoint of the gateway. */
export interface EndpointTarget extends CommonTarget {
  readonly transport: 'http';
  readonly endpoint: string;
  /** True when the client signs its user in by a browser and so needs no key. */
  readonly isSignIn?: boolean;
}

/** The targets by which a client may reach one template. */
export interface ConnectTargets {
  readonly stdio: ProgramTarget;
  readonly http: EndpointTarget;
  /** The address at which the gateway lets users sign in: the default for clients that can. */
  readonly signIn?: EndpointTarget | undefined;
}

/** The name of all templates together in the configuration of a client. */
export const ALL_TEMPLATES = 'stagedoor';

/**
 * The targets of a client that may run on another machine, where `stagedoor` has to be installed; for all
 * templates without `wanted`.
 * `signIn`: the address of the gateway for clients whose user signs in; undefined where no user can.
 */
export function remoteTargets(
  wanted: string | undefined,
  url: string,
  needsKey: boolean,
  signIn?: string,
): ConnectTargets {
  const template = wanted ?? ALL_TEMPLATES;
  const key = needsKey ? { variable: 'STAGEDOOR_API_KEY' } : undefined;
  const args = ['bridge', ...(wanted === undefined ? [] : [wanted]), '--url', url];
  const path = wanted === undefined ? '/mcp' : `/mcp/${wanted}`;
  return {
    http: { transport: 'http', template, url, key, endpoint: `${url}${path}` },
    signIn: signInTarget(template, url, signIn && `${signIn}${path}`),
    stdio: { transport: 'stdio', template, url, key, program: 'bridge', command: 'stagedoor', args, env: {} },
  };
}

/** The target for a client whose user signs in. `endpoint`: undefined where no user can sign in. */
export function signInTarget(
  template: string,
  url: string,
  endpoint: string | undefined,
): EndpointTarget | undefined {
  if (endpoint === undefined) return undefined;
  return { transport: 'http', template, url, key: undefined, endpoint, isSignIn: true };
}

/** The API key. It is sent as X-API-Key, or handed to the bridge as STAGEDOOR_API_KEY. */
export interface Key {
  /** The variable in the user's environment that holds the key. */
  readonly variable: string;
  /** The key itself, only when the snippet is to contain it. */
  readonly value?: string;
}

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

/** The text in place of the key where a client can read no variable. */
export const KEY_PLACEHOLDER = 'YOUR_API_KEY';

/** The text for the key in a snippet. `reference` writes a variable in the client's syntax; without it: the placeholder. */
function keyText({ variable, value }: Key, reference?: (variable: string) => string): string {
  return value ?? (reference === undefined ? KEY_PLACEHOLDER : reference(variable));
}

export function environmentOf(
  { env, key }: ProgramTarget,
  reference?: (variable: string) => string,
): Readonly<Record<string, string>> {
  return key === undefined ? env : { ...env, STAGEDOOR_API_KEY: keyText(key, reference) };
}

export function headersOf(
  { key }: EndpointTarget,
  reference?: (variable: string) => string,
): Readonly<Record<string, string>> {
  return key === undefined ? {} : { 'X-API-Key': keyText(key, reference) };
}

/** The member, or nothing when its value is empty. */
export function unlessEmpty<Name extends string>(
  name: Name,
  value: Readonly<Record<string, unknown>>,
): Partial<Record<Name, unknown>> {
  return Object.keys(value).length === 0 ? {} : ({ [name]: value } as Record<Name, unknown>);
}

/** The variable from which the client reads the key; undefined when the snippet contains the key, or needs none. */
export function keyVariable({ key }: ConnectTarget): string | undefined {
  return key?.value === undefined ? key?.variable : undefined;
}

/** The target, with a key only if the snippet contains it: for clients that list the names of variables. */
export function withWrittenKey<C extends ConnectTarget>(target: C): C {
  return keyVariable(target) === undefined ? target : { ...target, key: undefined };
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

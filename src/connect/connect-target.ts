// The server that an MCP client is set up for, the ways in which it is reached, and the key that the client sends.

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

/** The transports of MCP clients. */
export const CLIENT_TRANSPORTS = ['http', 'stdio'] as const satisfies readonly ConnectTarget['transport'][];

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

/** The variable from which the client reads the key; undefined when the snippet contains the key, or needs none. */
export function keyVariable({ key }: ConnectTarget): string | undefined {
  return key?.value === undefined ? key?.variable : undefined;
}

/** The target, with a key only if the snippet contains it: for clients that list the names of variables. */
export function withWrittenKey<C extends ConnectTarget>(target: C): C {
  return keyVariable(target) === undefined ? target : { ...target, key: undefined };
}

// The table of the kinds of transport: the traits of each. Other code asks for a trait; only what reads or
// writes the settings of clients, containers and published servers (connect, cli/connect, discovery, templates)
// names a kind.
// The module of a kind is src/transports/<kind>/<kind>.ts. The form of the console gets its list from here when it
// is built. Source: ADR 180.

import type { PinnedEra } from '../mcp/mcp.ts';

interface TransportTraits {
  /**
   * The way to the server. `endpoint`: an http or https URL (domain/registration/instance-endpoint.ts), where a backend serves
   * the conversations of many clients. `function`: one of an embedding program.
   */
  readonly reachedBy: 'endpoint' | 'command' | 'function';
  /** True when it is known to which call a request of the backend belongs. */
  readonly attributesRequests: boolean;
  /** The path that is added to an endpoint without one. */
  readonly defaultPath?: string;
  /** The only era that the transport can speak. */
  readonly onlyEra?: PinnedEra;
  /** Full name of the kind in messages. */
  readonly title: string;
  /** Further names in registry files and template definitions, in lower case. */
  readonly aliases: readonly string[];
}

/** The kinds, in the order of help and documents. */
const TABLE = {
  http: {
    title: 'Streamable HTTP',
    aliases: ['https', 'streamable-http', 'streamable_http', 'streamablehttp'],
    reachedBy: 'endpoint',
    defaultPath: '/mcp',
    attributesRequests: true,
  },
  sse: {
    title: 'HTTP+SSE',
    aliases: [],
    reachedBy: 'endpoint',
    defaultPath: '/sse',
    onlyEra: 'legacy',
    attributesRequests: false,
  },
  stdio: { title: 'stdio', aliases: [], reachedBy: 'command', attributesRequests: false },
  'in-process': {
    title: 'in-process',
    aliases: [],
    reachedBy: 'function',
    attributesRequests: true,
  },
} as const satisfies Readonly<Record<string, TransportTraits>>;

export type TransportKind = keyof typeof TABLE;
/** The kinds that an instance may be registered with. */
type RegistrableKind = {
  [K in TransportKind]: (typeof TABLE)[K]['reachedBy'] extends 'function' ? never : K;
}[TransportKind];

export const TRANSPORT_TRAITS: Readonly<Record<TransportKind, TransportTraits>> = TABLE;
export const TRANSPORT_KINDS = Object.keys(TABLE) as TransportKind[];
export const REGISTRABLE_KINDS = TRANSPORT_KINDS.filter(isRegistrable);

const BY_WORD: ReadonlyMap<string, RegistrableKind> = new Map(
  REGISTRABLE_KINDS.flatMap((kind) => [kind, ...TRANSPORT_TRAITS[kind].aliases].map((word) => [word, kind])),
);

/** The kind of an instance that is a function of the embedding program. */
export const FUNCTION_TRANSPORT: TransportKind = 'in-process';

/** The kind that is meant by this word in a file; undefined for no known one. */
export function transportNamed(word: string): RegistrableKind | undefined {
  return BY_WORD.get(word.toLowerCase());
}

/** The kind of an instance that names none. */
export function defaultTransport({ endpoint }: { readonly endpoint?: string | undefined }): RegistrableKind {
  return endpoint === undefined ? 'stdio' : 'http';
}

/** True when one connection may carry many conversations, and each of them many calls. */
export function isNetworked({ transport }: { readonly transport: TransportKind }): boolean {
  return TRANSPORT_TRAITS[transport].reachedBy === 'endpoint';
}

/** True when a dedicated conversation is a process. Over HTTP, where it is a session of the backend, it is none. */
export function hasProcesses({ transport }: { readonly transport: TransportKind }): boolean {
  return TRANSPORT_TRAITS[transport].reachedBy === 'command';
}

/** True for an instance whose program the gateway starts, also behind an endpoint: it has a command, whatever its kind. */
export function runsProgram<D extends { readonly command?: string | undefined }>(
  definition: D,
): definition is D & { readonly command: string } {
  return definition.command !== undefined;
}

/**
 * True for a function of the embedding program: it has one conversation for all clients, and sends no requests to them. It lasts
 * as long as that program, and is not stored.
 */
export function isFunction({ transport }: { readonly transport: TransportKind }): boolean {
  return TRANSPORT_TRAITS[transport].reachedBy === 'function';
}

function isRegistrable(transport: TransportKind): transport is RegistrableKind {
  return !isFunction({ transport });
}

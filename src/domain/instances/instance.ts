// One instance of a template: its definition, which is stored, and the snapshot of its present state, which is not.

import Type, { type Static } from 'typebox';
import { PINNED_ERAS, type PinnedEra } from '../mcp/mcp.ts';
import type { InstanceAuth } from './account-connection.ts';
import { REGISTRABLE_KINDS, type TransportKind } from './transport-kinds.ts';

/** Environment variables of one instance. Over it: VALIDATION_ERROR. */
export const MAX_VARIABLES = 256;
/** Headers of one instance. Over it: VALIDATION_ERROR. */
export const MAX_HEADERS = 64;

export const InstanceId = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
  examples: ['everything-1'],
});

/** An id that no caller chose, of at most 128 characters: `<template>-<eight digits>`. */
export function instanceIdOf(template: string, digits: string): string {
  return `${template.slice(0, 119)}-${digits.slice(0, 8)}`;
}

export const MAX_WEIGHT = 1_000;

/** The option of schemas of records without which names that do not match the pattern are accepted with any value. */
const ONLY_THESE_NAMES = { additionalProperties: false } as const;
/** One line of Latin-1: every request with another header would fail. Source: RFC 9110 section 5.5. */
const HEADER_TEXT = '^[\\t\\x20-\\x7e\\x80-\\xff]*$';

const VARIABLE_NAME = '^[A-Za-z_][A-Za-z0-9_]*$';

/**
 * The authentication that a server at an endpoint wants of callers: `oauth` with an account of each user, or a shared
 * one. Source: ADR 218.
 */
const AuthInput = Type.Object(
  {
    mode: Type.Enum(['none', 'headers', 'oauth']),
    who: Type.Optional(Type.Enum(['user', 'shared'])),
    /** The gateway as a client of the authorization server. Default: it registers itself there. */
    client_id: Type.Optional(Type.String({ minLength: 1, maxLength: 2048 })),
    client_secret: Type.Optional(Type.String({ minLength: 1, maxLength: 8192 })),
    /** The scopes to ask for. Default: those that the server asks for. */
    scopes: Type.Optional(
      Type.Array(Type.String({ pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]{1,256}$' }), { maxItems: 64 }),
    ),
  },
  { additionalProperties: false, examples: [{ mode: 'oauth', who: 'shared' }] },
);

const { mode, who, scopes } = AuthInput.properties;
/**
 * The `auth` of a template, for its instances that have none. `checkedTemplateAuth` also refuses other fields.
 * Source: ADR 228.
 */
export const TemplateAuth = Type.Object(
  { mode, who, scopes },
  { examples: [{ mode: 'oauth', who: 'user' }], schemaName: 'TemplateAuth' },
);
export type TemplateAuth = Static<typeof TemplateAuth>;

/** The fields of an instance as a caller writes them. Source: ADR 6. */
export const InstanceInput = Type.Object(
  {
    id: Type.Optional(InstanceId),
    /** URL of a server over HTTP; without a path that of its transport is added: `/mcp`, or `/sse` for `sse`. */
    endpoint: Type.Optional(Type.String({ minLength: 1, maxLength: 2048 })),
    /** The program to start; when `args` is absent, with its arguments: split into words, without a shell. */
    command: Type.Optional(Type.String({ minLength: 1, maxLength: 8192 })),
    args: Type.Optional(Type.Array(Type.String({ maxLength: 8192 }), { maxItems: 256 })),
    working_dir: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
    env_vars: Type.Optional(
      Type.Record(Type.String({ pattern: VARIABLE_NAME }), Type.String({ maxLength: 32768 }), {
        ...ONLY_THESE_NAMES,
        maxProperties: MAX_VARIABLES,
      }),
    ),
    /** The names of variables whose values are secret: no error and no line of output shows them. Others: ADR 154. */
    secret_env_vars: Type.Optional(
      Type.Array(Type.String({ pattern: VARIABLE_NAME }), { maxItems: MAX_VARIABLES }),
    ),
    headers: Type.Optional(
      Type.Record(
        Type.String({ pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" }),
        Type.String({
          maxLength: 8192,
          pattern: HEADER_TEXT,
          'x-words': 'one line of ISO 8859-1, without control characters but tabs',
        }),
        { ...ONLY_THESE_NAMES, maxProperties: MAX_HEADERS },
      ),
    ),
    auth: Type.Optional(AuthInput),
    transport: Type.Optional(Type.Enum(REGISTRABLE_KINDS)),
    /** The era that is spoken with the server; `auto` finds it out. Default: `auto`. Source: ADR 10. */
    era: Type.Optional(Type.Enum(['auto', ...PINNED_ERAS])),
    /**
     * The node that runs a program: an id, or `any`, for a program on standard input and output. Default: on a
     * database server `any` for such a program without a working directory, else this node. Source: ADR 168.
     */
    node: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    /** The command may name secrets and files of the gateway (ADR 87). Default: false. */
    force: Type.Optional(Type.Boolean()),
    weight: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_WEIGHT, examples: [2] })),
    metadata: Type.Optional(
      Type.Record(Type.String({ pattern: '^[\\s\\S]{0,256}$' }), Type.Unknown(), {
        ...ONLY_THESE_NAMES,
        examples: [{ team: 'search' }],
      }),
    ),
  },
  {
    additionalProperties: false,
    schemaName: 'InstanceInput',
    // Not an id of the demo: registering it would replace that instance.
    examples: [{ id: 'remote-1', endpoint: 'http://127.0.0.1:3001/mcp', weight: 2 }],
  },
);
export type InstanceInput = Static<typeof InstanceInput>;

/** The fields of an instance that may change without a new registration. A change of `era` opens it again. */
export const InstanceChange = Type.Object(
  {
    weight: InstanceInput.properties.weight,
    metadata: InstanceInput.properties.metadata,
    era: InstanceInput.properties.era,
  },
  { additionalProperties: false },
);
export type InstanceChange = Static<typeof InstanceChange>;

export interface ContainerRef {
  /** Address of the engine's API: `unix:///run/podman/podman.sock`. */
  readonly engine: string;
  /** The full id. */
  readonly id: string;
}

/** The definition of an instance. Immutable; a change makes a new object. */
export interface InstanceDefinition {
  /** Unique in its template. */
  readonly id: string;
  /** Names the instance in the whole registry, where it is unique; never changes. */
  readonly serverId: string;
  readonly template: string;
  readonly transport: TransportKind;
  /** The URL of the server, for http and sse. Together with `command`: the gateway runs the program that serves this endpoint. */
  readonly endpoint?: string;
  readonly command?: string;
  readonly args: readonly string[];
  readonly workingDir?: string;
  readonly env: Readonly<Record<string, string>>;
  /** The names of variables whose values are secret whatever they are called. */
  readonly secretEnv?: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  /** The authentication of callers, when the server wants OAuth. */
  readonly auth?: InstanceAuth;
  /** The only era that is spoken with it. Default: the server decides. */
  readonly era?: PinnedEra;
  /** True when the command may name secrets and files of the gateway. */
  readonly force?: true;
  readonly weight: number;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly source: 'api' | 'file' | 'sync';
  /** The container in which sync found it, and in which its command runs. */
  readonly container?: ContainerRef;
  /** The node that runs its program or reaches its engine, or `any`; absent for endpoints that every node can reach. */
  readonly nodeId?: string;
  /** Fingerprint of its entry in the registry file, or of the finding; not with source `api`. */
  readonly fingerprint?: string;
  /** The reason why its secrets cannot be decrypted: it is listed and never started. Not stored. */
  readonly locked?: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly updatedAt: string;
}

export const INSTANCE_STATES = ['starting', 'healthy', 'unhealthy', 'draining', 'stopped'] as const;
export type InstanceState = (typeof INSTANCE_STATES)[number];

/** What the node that runs an instance does with it; other nodes do the same. */
export interface HostDuty {
  /** True while it takes no new calls. */
  readonly isDraining: boolean;
  /** True while it ends to start again, there or at another node: calls wait for that. Nodes of earlier releases omit it. */
  readonly isRenewing?: boolean;
}

/**
 * The states from the worst to the best, as several nodes see an instance. A node at which it is stopped does not use
 * it. Source: ADR 172.
 */
export const STATE_RANKS: readonly InstanceState[] = [
  'unhealthy',
  'starting',
  'draining',
  'healthy',
  'stopped',
];

/** The first of the states in STATE_RANKS; `stopped` without any. */
export function worstState(states: readonly InstanceState[]): InstanceState {
  return STATE_RANKS.find((state) => states.includes(state)) ?? 'stopped';
}

/** The present state of an instance, for the API, the console, the metrics and the events. */
export interface InstanceSnapshot {
  readonly id: string;
  readonly serverId: string;
  readonly template: string;
  readonly state: InstanceState;
  readonly healthy: boolean;
  /** Calls in flight, including those that wait for an answer of their client between two rounds. */
  readonly inFlight: number;
  readonly weight: number;
  /** Health score 0-100 as the health_based strategy sees it. */
  readonly score: number;
  /** Exponentially weighted time to the answer; null before the first call or probe. */
  readonly latencyMs: number | null;
  /** Failed probes and openings in a row. */
  readonly consecutiveFailures: number;
  /** ISO 8601 of the last finished probe or opening. */
  readonly lastCheck: string | null;
  /** ISO 8601 of the next attempt to open it; null unless it waits for one. */
  readonly nextAttemptAt: string | null;
  /** The reason why it is not healthy; null while it is healthy. */
  readonly reason: string | null;
  /** The ejection, while it is ejected or avoided because of the results of its calls, whatever its health. */
  readonly ejection: {
    /** A clause: "5 calls in a row failed". */
    readonly reason: string;
    /** ISO 8601: from then on a trial call decides whether it gets calls again. */
    readonly until: string;
  } | null;
  readonly restarts: number;
  readonly era: string | null;
  /** The process id of the child, when the gateway runs one. */
  readonly pid: number | null;
  /** The last lines of the child's standard error; without a child those of the last one. */
  readonly stderr: readonly string[];
  /** The transport that its server speaks while it is connected, if that is not the registered one. */
  readonly foundTransport?: TransportKind;
  /** Absent for none. */
  readonly oddOutput?: OddOutput;
}

/** What a program wrote to standard output in another form than MCP has it, in numbers since its start. */
export interface OddOutput {
  /** Lines that are not JSON-RPC. */
  readonly lines: number;
  /** Answers whose id came back as a text. */
  readonly idsAsText: number;
  /** Lines with an array of messages. */
  readonly arrays: number;
}

/** Counts all instances except draining and stopped ones. */
export function countHealth(instances: readonly Pick<InstanceSnapshot, 'state'>[]) {
  const counted = instances.filter(({ state }) => state !== 'draining' && state !== 'stopped');
  const total = counted.length;
  const healthy = counted.filter(({ state }) => state === 'healthy').length;
  return { total, healthy, healthPercentage: total === 0 ? 0 : Math.round((healthy / total) * 1000) / 10 };
}

/** Bounds of the dedicated processes and conversations of one instance. */
export interface DedicatedBounds {
  /** Dedicated processes of the instance. Over it: QUEUE_FULL. Default: LIMITS.dedicatedProcesses. */
  readonly processes?: number;
  /**
   * The part of these processes, and of other conversations, that one owner may hold: above 0, and 1 for all. Default
   * LIMITS.ownerShare.
   */
  readonly share?: number;
}

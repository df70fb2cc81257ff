// The record and the health of a registered instance, as API answers have them. Source: ADR 6.

import Type, { type Static } from 'typebox';
import type { Principal } from '../../domain/accounts/principal.ts';
import { INSTANCE_STATES, type InstanceSnapshot } from '../../domain/instances/instance.ts';
import { TRANSPORT_KINDS } from '../../domain/instances/transport-kinds.ts';
import { definedFields } from '../../domain/json/json.ts';
import { PINNED_ERAS } from '../../domain/mcp/mcp.ts';
import { ANY_NODE, runsAnywhere } from '../../domain/nodes/nodes.ts';
import { cutText, lastWords } from '../../domain/text.ts';
import type { Server } from '../../gateway/gateway-types.ts';
import { StatesByNode } from '../all-nodes/instance-states.ts';
import { seesMachine } from '../callers/visible.ts';
import {
  integer,
  NullableTime,
  named,
  nullable,
  nullableText,
  number,
  rounded,
  Time,
  text,
} from './schemas.ts';

function masks(example: Readonly<Record<string, '***'>>) {
  return Type.Record(Type.String(), Type.Literal('***'), { examples: [example] });
}

/** The fields of an instance that its record and its health have in common. */
const stateFields = {
  transport: Type.Enum([...TRANSPORT_KINDS]),
  weight: integer(2),
  status: Type.Enum(['healthy', 'unhealthy']),
  healthy: Type.Boolean(),
  state: Type.Enum([...INSTANCE_STATES], { examples: ['healthy'] }),
  nodes: StatesByNode,
  in_flight: integer(0),
  reason: nullableText(),
  /** The reason and the end of the ejection; null for an instance that gets calls. */
  ejection: nullable(Type.Object({ reason: Type.String(), until: Type.String() })),
  restarts: integer(0),
  last_check: NullableTime,
  /** The time at which the instance is opened again; null unless it waits for that. */
  next_attempt_at: NullableTime,
};

/** The reason, which may quote the program, is only for viewers of the machine. */
function stateOf({ definition, snapshot }: Server, viewer: Principal) {
  return {
    transport: snapshot.foundTransport ?? definition.transport,
    weight: definition.weight,
    status: snapshot.healthy ? ('healthy' as const) : ('unhealthy' as const),
    healthy: snapshot.healthy,
    state: snapshot.state,
    in_flight: snapshot.inFlight,
    reason: seesMachine(viewer) ? fullReason(snapshot) : null,
    ejection: snapshot.ejection,
    restarts: snapshot.restarts,
    last_check: snapshot.lastCheck,
    next_attempt_at: snapshot.nextAttemptAt,
  };
}

const healthFields = {
  ...stateFields,
  score: number(99.5),
  latency_ms: nullable(Type.Number(), 1.25),
  consecutive_failures: integer(0),
};
export const InstanceHealth = Type.Object(healthFields);

export function instanceHealth(server: Server, viewer: Principal): Static<typeof InstanceHealth> {
  const { score, latencyMs, consecutiveFailures } = server.snapshot;
  return {
    ...stateOf(server, viewer),
    score: rounded(score, 1),
    latency_ms: latencyMs === null ? null : rounded(latencyMs, 3),
    consecutive_failures: consecutiveFailures,
  };
}

export const InstanceRecord = named('InstanceRecord', {
  id: text('everything-1'),
  server_id: text('everything-1'),
  template_name: text('everything'),
  endpoint: nullableText('http://127.0.0.1:3001/mcp'),
  command: nullableText(),
  args: Type.Array(Type.String(), { examples: [[]] }),
  working_dir: nullableText(),
  /** Id of the container in which sync found it. */
  container: Type.Optional(Type.String()),
  /** The era of the server, only if the registration fixes it. */
  era: Type.Optional(Type.Enum(PINNED_ERAS)),
  force: Type.Optional(Type.Boolean()),
  env_vars: masks({}),
  /** Names of variables that are secret whatever they are called. */
  secret_env_vars: Type.Optional(Type.Array(Type.String())),
  headers: masks({ Authorization: '***' }),
  /** The account that is used; set when the server is reached with an account. */
  auth: Type.Optional(
    Type.Object({
      mode: Type.Literal('oauth'),
      who: Type.Enum(['user', 'shared']),
      client_id: Type.Optional(Type.String()),
      client_secret: Type.Optional(Type.Literal('***')),
      scopes: Type.Optional(Type.Array(Type.String())),
    }),
  ),
  metadata: Type.Record(Type.String(), Type.Unknown(), { examples: [{ team: 'search' }] }),
  source: Type.Enum(['api', 'file', 'sync']),
  node_id: nullableText('node-a'),
  /** The node that runs a program of any node; null while none does, or where there is only one node. */
  running_on: Type.Optional(nullableText('node-a')),
  ...stateFields,
  sessions: integer(3),
  own_processes: integer(1),
  pid: nullable(Type.Integer()),
  warnings: Type.Array(Type.String()),
  stderr: Type.Array(Type.String(), { examples: [[]] }),
  created_at: Time,
  updated_at: Time,
});
export type InstanceRecord = Static<typeof InstanceRecord>;

/**
 * Makes the record for one viewer. `pid` is the process that clients share.
 * Values of `env_vars` and `headers` are always masked, because they may be secrets. Details of the machine
 * (command, arguments and folder, query of an endpoint, processes, standard error, and the reason, which may quote
 * them) need the scope `gateway:write`.
 */
export function instanceRecord(server: Server, viewer: Principal): InstanceRecord {
  const record = recordOf(server, viewer);
  if (seesMachine(viewer)) return record;
  const { force, container, ...others } = record;
  const endpoint = record.endpoint?.replace(/\?.*$/s, '') ?? null;
  return { ...others, endpoint, command: null, args: [], working_dir: null, pid: null, stderr: [] };
}

/** Lines of standard error in a reason, and characters of each. */
const LINES_IN_REASON = 3;
const CHARACTERS_OF_LINE = 200;

/** The reason of an unhealthy instance, for viewers of the machine: with its last output if it has no session. */
function fullReason({ reason, era, healthy, stderr }: InstanceSnapshot): string | null {
  if (reason === null || healthy || era !== null) return reason;
  const lines = lastWords(stderr, LINES_IN_REASON).map((line) => cutText(line.trim(), CHARACTERS_OF_LINE));
  return lines.length === 0 ? reason : `${reason}; last output: ${lines.join(' | ')}`;
}

function recordOf(server: Server, viewer: Principal): InstanceRecord {
  const { definition, snapshot, runner, clients, warnings = [] } = server;
  return {
    id: definition.id,
    server_id: definition.serverId,
    template_name: definition.template,
    endpoint: definition.endpoint ?? null,
    command: definition.command ?? null,
    args: [...definition.args],
    working_dir: definition.workingDir ?? null,
    ...(definition.container === undefined ? {} : { container: definition.container.id }),
    ...(definition.era === undefined ? {} : { era: definition.era }),
    ...(definition.force === true ? { force: true } : {}),
    env_vars: masked(definition.env),
    ...(definition.secretEnv === undefined ? {} : { secret_env_vars: [...definition.secretEnv] }),
    headers: masked(definition.headers),
    ...authOf(definition),
    metadata: { ...definition.metadata },
    source: definition.source,
    node_id: definition.nodeId ?? null,
    ...(runsAnywhere(definition) ? { running_on: runner === ANY_NODE ? null : (runner ?? null) } : {}),
    ...stateOf(server, viewer),
    sessions: clients.sessions,
    own_processes: clients.ownProcesses,
    pid: snapshot.pid,
    warnings: [...warnings],
    stderr: [...snapshot.stderr],
    created_at: definition.createdAt,
    updated_at: definition.updatedAt,
  };
}

function authOf({ auth }: Server['definition']): Pick<InstanceRecord, 'auth'> {
  if (auth === undefined) return {};
  const { who, clientId, clientSecret, scopes } = auth;
  return {
    auth: {
      mode: 'oauth',
      who,
      ...definedFields({ client_id: clientId }),
      ...(clientSecret === undefined ? {} : { client_secret: '***' }),
      ...(scopes === undefined ? {} : { scopes: [...scopes] }),
    },
  };
}

function masked(values: Readonly<Record<string, string>>): Record<string, '***'> {
  return Object.fromEntries(Object.keys(values).map((name) => [name, '***'] as const));
}

/** `partial`: nodes at which the command has no effect. */
